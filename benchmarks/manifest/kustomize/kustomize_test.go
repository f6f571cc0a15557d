// The competitor of ours_bench.cpp: the files of the golden test "everything" as a kustomize base, built in memory through an
// overlay that sets image, namespace and replicas; and the same objects written and read by sigs.k8s.io/yaml.
//
//	go test -bench . -benchmem
package kustomize

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const golden = "../../../tests/golden/manifest/everything"

const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../base
namespace: shop
images:
- name: registry.example.com:5000/acme/shop
  newTag: "1.5"
replicas:
- name: shop
  count: 3
commonAnnotations:
  kubeopera.io/revision: "7"
`

func files(tb testing.TB) map[string][]byte {
	out := map[string][]byte{}
	paths, err := filepath.Glob(filepath.Join(golden, "*.yaml"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no golden files: %v", err)
	}
	for _, p := range paths {
		content, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		out[filepath.Base(p)] = content
	}
	return out
}

func disk(tb testing.TB) filesys.FileSystem {
	fs := filesys.MakeFsInMemory()
	for name, content := range files(tb) {
		if err := fs.WriteFile("/base/"+name, content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := fs.WriteFile("/overlay/kustomization.yaml", []byte(overlay)); err != nil {
		tb.Fatal(err)
	}
	return fs
}

func build(tb testing.TB, fs filesys.FileSystem) []byte {
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/overlay")
	if err != nil {
		tb.Fatal(err)
	}
	out, err := m.AsYaml()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func BenchmarkRender(b *testing.B) {
	fs := disk(b)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		build(b, fs)
	}
}

// Kustomize has no cheaper way to know that nothing changed than to build again and compare.
func BenchmarkNothingChanged(b *testing.B) {
	fs := disk(b)
	known := build(b, fs)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if !bytes.Equal(build(b, fs), known) {
			b.Fatal("the output moved")
		}
	}
}

func objects(tb testing.TB) []map[string]interface{} {
	var out []map[string]interface{}
	for name, content := range files(tb) {
		if name == "kustomization.yaml" {
			continue
		}
		var o map[string]interface{}
		if err := yaml.Unmarshal(content, &o); err != nil {
			tb.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func BenchmarkWriteObjects(b *testing.B) {
	all := objects(b)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		for _, o := range all {
			if _, err := yaml.Marshal(o); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReadFiles(b *testing.B) {
	all := files(b)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		for _, content := range all {
			var o map[string]interface{}
			if err := yaml.UnmarshalStrict(content, &o); err != nil {
				b.Fatal(err)
			}
		}
	}
}
