// Package etcdtest runs real members of etcd for tests and benchmarks of package kvqueue:
// each is a process of etcd 3.6, which tools/needs.sh builds. They listen on 127.0.0.1, keep their
// files in a temporary folder, and can be killed, stopped and started again. It works on Linux only.
//
//	func TestSomething(t *testing.T) {
//		cluster := etcdtest.Start(t, 3)
//		kv := etcdkv.New(cluster.Client(t))
//		...
package etcdtest
