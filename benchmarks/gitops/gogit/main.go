// go-git on its best path: the trees on the changed paths rewritten through the storer, loose objects, no worktree and no index.
// Reads commits from standard input and answers each with its tree and the nanoseconds that it took (../piped_bench.cpp).
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// A directory's edits: files by name, directories by name.
type edits struct {
	blobs   map[string]plumbing.Hash
	folders map[string]*edits
}

func newEdits() *edits {
	return &edits{blobs: map[string]plumbing.Hash{}, folders: map[string]*edits{}}
}

func (e *edits) at(path string) (*edits, string) {
	steps := strings.Split(path, "/")
	for _, step := range steps[:len(steps)-1] {
		next := e.folders[step]
		if next == nil {
			next = newEdits()
			e.folders[step] = next
		}
		e = next
	}
	return e, steps[len(steps)-1]
}

type writer struct {
	repository *git.Repository
	tip        plumbing.Hash
}

func (w *writer) blob(content []byte) (plumbing.Hash, error) {
	o := w.repository.Storer.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	o.SetSize(int64(len(content)))
	out, err := o.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err = out.Write(content); err != nil {
		return plumbing.ZeroHash, err
	}
	out.Close()
	return w.repository.Storer.SetEncodedObject(o)
}

func (w *writer) tree(base plumbing.Hash, e *edits) (plumbing.Hash, error) {
	var entries []object.TreeEntry
	place := map[string]int{}
	if !base.IsZero() {
		old, err := object.GetTree(w.repository.Storer, base)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		entries = append(entries, old.Entries...)
		for i, entry := range entries {
			place[entry.Name] = i
		}
	}
	put := func(name string, mode filemode.FileMode, id plumbing.Hash) {
		if i, known := place[name]; known {
			entries[i].Hash, entries[i].Mode = id, mode
			return
		}
		entries = append(entries, object.TreeEntry{Name: name, Mode: mode, Hash: id})
	}
	for name, id := range e.blobs {
		put(name, filemode.Regular, id)
	}
	for name, below := range e.folders {
		before := plumbing.ZeroHash
		if i, known := place[name]; known {
			before = entries[i].Hash
		}
		id, err := w.tree(before, below)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		put(name, filemode.Dir, id)
	}
	sort.Sort(object.TreeEntrySorter(entries))
	o := w.repository.Storer.NewEncodedObject()
	if err := (&object.Tree{Entries: entries}).Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.repository.Storer.SetEncodedObject(o)
}

func (w *writer) commit(when int64, message string, files map[string][]byte) (plumbing.Hash, error) {
	top := newEdits()
	for path, content := range files {
		id, err := w.blob(content)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		folder, name := top.at(path)
		folder.blobs[name] = id
	}
	last, err := object.GetCommit(w.repository.Storer, w.tip)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	tree, err := w.tree(last.TreeHash, top)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	who := object.Signature{Name: "bench", Email: "bench@localhost", When: time.Unix(when, 0).UTC()}
	commit := &object.Commit{Author: who, Committer: who, Message: message, TreeHash: tree, ParentHashes: []plumbing.Hash{w.tip}}
	o := w.repository.Storer.NewEncodedObject()
	if err := commit.Encode(o); err != nil {
		return plumbing.ZeroHash, err
	}
	w.tip, err = w.repository.Storer.SetEncodedObject(o)
	return tree, err
}

func run(path string) error {
	storer := filesystem.NewStorageWithOptions(osfs.New(path), cache.NewObjectLRUDefault(),
		filesystem.Options{KeepDescriptors: true, ExclusiveAccess: true})
	repository, err := git.Open(storer, nil)
	if err != nil {
		return err
	}
	main, err := repository.Reference("refs/heads/main", true)
	if err != nil {
		return err
	}
	w := &writer{repository: repository, tip: main.Hash()}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		var when int64
		var size, count int
		if _, err := fmt.Fscanf(in, "%d %d %d\n", &when, &size, &count); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(in, message); err != nil {
			return err
		}
		files := make(map[string][]byte, count)
		for i := 0; i < count; i++ {
			var bytes int
			var name string
			if _, err := fmt.Fscanf(in, "%d %s\n", &bytes, &name); err != nil {
				return err
			}
			content := make([]byte, bytes)
			if _, err := io.ReadFull(in, content); err != nil {
				return err
			}
			files[name] = content
		}
		begin := time.Now()
		tree, err := w.commit(when, string(message), files)
		if err != nil {
			return err
		}
		fmt.Printf("%s %d\n", tree, time.Since(begin).Nanoseconds())
	}
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
