// Reads every object that branch main of a bare repository reaches, by go-git, and counts them.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

type reader struct {
	repository            *git.Repository
	known                 map[plumbing.Hash]bool
	commits, trees, blobs int
}

func (r *reader) tree(id plumbing.Hash) error {
	if r.known[id] {
		return nil
	}
	r.known[id] = true
	r.trees++
	tree, err := r.repository.TreeObject(id)
	if err != nil {
		return fmt.Errorf("tree %s: %w", id, err)
	}
	for _, entry := range tree.Entries {
		if entry.Mode.IsFile() {
			err = r.blob(entry.Hash)
		} else {
			err = r.tree(entry.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) blob(id plumbing.Hash) error {
	if r.known[id] {
		return nil
	}
	r.known[id] = true
	r.blobs++
	blob, err := r.repository.BlobObject(id)
	if err != nil {
		return fmt.Errorf("blob %s: %w", id, err)
	}
	content, err := blob.Reader()
	if err != nil {
		return fmt.Errorf("blob %s: %w", id, err)
	}
	defer content.Close()
	read, err := io.Copy(io.Discard, content)
	if err != nil || read != blob.Size {
		return fmt.Errorf("blob %s: %d of %d bytes, %v", id, read, blob.Size, err)
	}
	return nil
}

func run(path string) error {
	repository, err := git.PlainOpen(path)
	if err != nil {
		return err
	}
	main, err := repository.Reference("refs/heads/main", true)
	if err != nil {
		return err
	}
	r := &reader{repository: repository, known: map[plumbing.Hash]bool{}}
	log, err := repository.Log(&git.LogOptions{From: main.Hash()})
	if err != nil {
		return err
	}
	err = log.ForEach(func(c *object.Commit) error {
		r.commits++
		return r.tree(c.TreeHash)
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d commits, %d trees, %d blobs\n", r.commits, r.trees, r.blobs)
	return nil
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
