// client-go's informers against the same server: "dynamic URL COUNT" or "typed URL COUNT". Prints one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func residentKiB() int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	panic("no VmRSS")
}

// dropManagedFields does what kubeopera's informer does by default.
func dropManagedFields(in any) (any, error) {
	switch o := in.(type) {
	case *unstructured.Unstructured:
		o.SetManagedFields(nil)
	case *v1.Pod:
		o.ManagedFields = nil
	}
	return in, nil
}

func informerOf(kind, url string) cache.SharedIndexInformer {
	config := &rest.Config{Host: url, QPS: -1}
	config.ContentType = "application/json"
	if kind == "dynamic" {
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		return dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0).ForResource(pods).Informer()
	}
	return informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0).Core().V1().Pods().Informer()
}

func main() {
	kind, url := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	informer := informerOf(kind, url)
	if err := informer.SetTransform(dropManagedFields); err != nil {
		panic(err)
	}
	runtime.GC()
	before := residentKiB()
	begin := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(begin)
	debug.FreeOSMemory()
	n := len(informer.GetStore().ListKeys())
	line, _ := json.Marshal(map[string]any{
		"contender": "client-go " + kind, "objects": n, "seconds": took.Seconds(), "kib": residentKiB() - before})
	fmt.Println(string(line))
	if n != count {
		os.Exit(1)
	}
}
