//go:build linux && kvbudgets

package budgets

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/kvqueue"
	"github.com/ambit-go/ambit/kvqueue/sqlitekv"
)

// consumes is the variable of the environment with the file of a process that consumes from it with so many consumers. It begins
// with a line of its input, ends with the input, and then tells how many items it has had.
const consumes = "KVBUDGETS_CONSUMES"

func consumeFile(path string) error {
	consumers, err := strconv.Atoi(os.Getenv(consumes + "_CONSUMERS"))
	if err != nil {
		return err
	}
	kv, err := sqlitekv.Open(path)
	if err != nil {
		return err
	}
	defer kv.Close()
	q, err := kvqueue.Open(context.Background(), kv, "q")
	if err != nil {
		return err
	}
	defer q.Close(context.Background())
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = in.ReadString('\n')
		stop()
	}()
	_ = q.Consume(ctx, consumers, 1, func(context.Context, []kvqueue.Item) error { return nil })
	fmt.Println(q.Stats().Acked)
	return nil
}

// A fileConsumer is such a process.
type fileConsumer struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startFileConsumer(t *testing.T, path string, consumers int) *fileConsumer {
	c := &fileConsumer{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.Env = append(os.Environ(), consumes+"="+path, fmt.Sprintf("%s_CONSUMERS=%d", consumes, consumers))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.out = bufio.NewScanner(out)
	c.in, err = c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.True(t, c.out.Scan(), "it has opened the queue")
	return c
}

// TestSQLite is K8: eight consumers on a SQLite file whose transactions are on the disk, in one process and in four.
func TestSQLite(t *testing.T) {
	var sides []func() result
	for _, processes := range []int{1, 4} {
		sides = append(sides, func() result { return fromFile(t, processes, 8/processes) })
	}
	took := turns(rounds, sides...)
	for i, of := range []string{"one process", "4 processes"} {
		tell(row{ID: "K8", What: "SQLite, synced: 8 consumers in " + of, Unit: "/s", Ours: valuesOf(took[i], rate), Budget: atLeast(2000)})
	}
}

// fromFile has processes with so many consumers each take items from a new file for a turn.
func fromFile(t *testing.T, processes, consumers int) result {
	path := filepath.Join(t.TempDir(), "queue.db")
	fillFile(t, path, 40_000)
	var all []*fileConsumer
	for range processes {
		all = append(all, startFileConsumer(t, path, consumers))
	}
	begin := time.Now()
	for _, c := range all {
		_, err := io.WriteString(c.in, "go\n")
		require.NoError(t, err)
	}
	time.Sleep(turn)
	var each []int64
	for _, c := range all {
		require.NoError(t, c.in.Close())
	}
	for _, c := range all {
		require.True(t, c.out.Scan(), "it has told how many items it has had")
		n, err := strconv.ParseInt(c.out.Text(), 10, 64)
		require.NoError(t, err)
		each = append(each, n)
	}
	took := time.Since(begin)
	for _, c := range all {
		require.NoError(t, c.Wait())
	}
	return resultOf(each, took, 0, 0)
}

func fillFile(t *testing.T, path string, items int) {
	kv, err := sqlitekv.Open(path, sqlitekv.NoSync())
	require.NoError(t, err)
	q, err := kvqueue.Open(t.Context(), kv, "q")
	require.NoError(t, err)
	for ; items > 0; items -= perBatch {
		_, err := q.Enqueue(t.Context(), values(perBatch)...)
		require.NoError(t, err)
	}
	require.NoError(t, q.Close(t.Context()))
	require.NoError(t, kv.Close())
}
