// Package etcdtest runs real members of etcd for tests and benchmarks of package kvqueue:
// each is a process of its own, which is the test program started once more. They listen on
// 127.0.0.1, keep their files in a temporary folder, and can be killed, stopped and started
// again. It is a module of its own, as etcd takes long to compile. It works on Linux only.
//
//	func TestMain(m *testing.M) { etcdtest.Main(); os.Exit(m.Run()) }
//
//	func TestSomething(t *testing.T) {
//		cluster := etcdtest.Start(t, 3)
//		kv := etcdkv.New(cluster.Client(t))
//		...
package etcdtest
