//go:build unix

package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/store"
)

// plans are statements that have to go by their index, however many tasks there are, and the
// index of each.
func plans() map[string]struct{ text, index string } {
	all := map[string]struct{ text, index string }{
		"claim":          {pickText, "tq_task_due"},
		"heads":          {headsText, "tq_task_due"},
		"head":           {headText, "tq_task_due"},
		"reap":           {reapText, "tq_task_run"},
		"replay":         {againText, "tq_task_run"},
		"forget":         {keysOf(forgetWhere), "tq_task_forget"},
		"expired letter": {keysOf(expiredWhere), "tq_task_end"},
		"surplus letter": {keysOf(surplusWhere), "tq_task_end"},
		"ready":          {readyText, "COVERING INDEX tq_task_due"},
		"later":          {laterText, "COVERING INDEX tq_task_due"},
		"oldest":         {oldestText, "COVERING INDEX tq_task_due"},
		"running":        {runningText, "tq_task_run"},
		"first surplus":  {surplusText, "tq_task_end"},
		"ended":          {endedText, "tq_task_end"},
		"releases":       {"SELECT " + hasReleases, "tq_release"},
		"gap":            {gapText, "tq_task_run"},
		"start":          {bootText, "tq_task_run"},
		"stale":          {staleText, "tq_task_parked"},
		"parked":         {parkedText, "tq_task_"},
		"held":           {heldText, "tq_task_held"},
		"wakes":          {wakesWhere, "tq_pace_at"},
		"next wake":      {nextWakeText, "tq_pace_at"},
		"recall parked":  {recallParkedText, "tq_task_limited"},
	}
	for state, index := range map[taskqueue.State]string{
		taskqueue.StateReady: "tq_task_due", taskqueue.StateScheduled: "tq_task_due", taskqueue.StateRetrying: "tq_task_retry", taskqueue.StateDead: "tq_task_end",
	} {
		for _, reverse := range []bool{false, true} {
			all[fmt.Sprintf("page of %v, reverse %v", state, reverse)] = struct{ text, index string }{spans(state)[0].text(true, reverse), index}
		}
	}
	return all
}

// bare is a statement without the braces of a part of another.
func bare(text string) string {
	if text, part := strings.CutPrefix(text, "("); part {
		return strings.TrimSuffix(text, ")")
	}
	return text
}

// filled has tasks in every state: many are due, many are not, and few run.
func filled(t *testing.T, s *Store, n int) {
	fill(t, s, n, 0)
	var all []store.Outcome
	for i, run := range claimed(t, s, n*3/10).Tasks {
		if i < n/4 {
			all = append(all, store.Outcome{Ref: store.Ref{ID: run.ID, Token: run.Token}, Kind: []store.OutcomeKind{store.Succeeded, store.Failed, store.Buried}[i%3], After: time.Hour})
		}
	}
	_, err := s.Settle(t.Context(), "q", all)
	require.NoError(t, err)
	fill(t, s, n, time.Hour)
}

func TestPlansOnSQLite(t *testing.T) {
	s := openTemp(t)
	defer func() { require.NoError(t, s.Close()) }()
	filled(t, s, 300)
	for name, of := range plans() {
		t.Run(name, func(t *testing.T) {
			var plan []string
			require.NoError(t, s.db.transact(t.Context(), reads, func(tx tx) error {
				return tx.run(query{text: "EXPLAIN QUERY PLAN " + bare(of.text), args: make([]any, strings.Count(of.text, "$")), each: func(scan func(...any) error) error {
					var id, parent, unused int64
					var detail string
					err := scan(&id, &parent, &unused, &detail)
					plan = append(plan, detail)
					return err
				}})
			}))
			text := strings.Join(plan, "\n")
			assert.Contains(t, text, of.index)
			assert.NotContains(t, strings.ReplaceAll(text, "SCAN CONSTANT ROW", ""), "SCAN")
			if !strings.Contains(of.text, "ORDER BY token") {
				assert.NotContains(t, text, "TEMP B-TREE")
			}
		})
	}
}

// The plans that the server keeps for any parameters.
func TestPlansOnPostgres(t *testing.T) {
	s, c := planned(t)
	filled(t, s, 3000)
	_, err := c.Exec(t.Context(), "INSERT INTO tq_pace SELECT 'q', 'w' || i, 'g', i % 2, i FROM generate_series(1, 3000) AS i; ANALYZE")
	require.NoError(t, err)
	for name, of := range plans() {
		if name == "ready" || name == "later" || name == "ended" { // they count so many that it reads them all
			continue
		}
		t.Run(name, func(t *testing.T) {
			if plan := goesByItsIndex(t, s, c, of.text, of.index); !strings.Contains(of.text, "ORDER BY token") {
				assert.NotContains(t, plan, "Sort")
			}
		})
	}
}

// A plan that is made before there are tasks is kept while they become many.
func TestPlansOnPostgresWithoutTasks(t *testing.T) {
	s, c := planned(t)
	for name, of := range map[string]*bulk{
		"runs to be settled": lockRuns, "tasks that begin": beginTasks, "runs that end": endRuns, "changed": changeTasks, "read": readTasks, "lent": lendTasks,
	} {
		t.Run(name, func(t *testing.T) { goesByItsIndex(t, s, c, of.postgres, "tq_task_pkey") })
	}
	t.Run("ahead", func(t *testing.T) { goesByItsIndex(t, s, c, pickAheadText, "tq_task_due") })
}

// planned returns a store, and a connection to its database with the settings of the store's transactions.
func planned(t *testing.T) (*Store, *pgx.Conn) {
	url := emptyDatabase(t)
	s, err := New(context.Background(), poolOf(t, url))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	_, err = c.Exec(t.Context(), "SELECT "+strings.ReplaceAll(planText, "true", "false"))
	require.NoError(t, err)
	return s, c
}

// goesByItsIndex looks at the plan of a statement that the connection keeps, and returns it.
func goesByItsIndex(t *testing.T, s *Store, c *pgx.Conn, text, index string) (plan string) {
	name := "p" + rand.Text()
	_, err := c.Exec(t.Context(), fmt.Sprintf("PREPARE %s AS %s", name, s.db.dialect().read(bare(text))), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	n := 0
	for strings.Contains(text, fmt.Sprint("$", n+1)) {
		n++
	}
	nulls := ""
	if n > 0 {
		nulls = "(" + strings.TrimSuffix(strings.Repeat("NULL,", n), ",") + ")"
	}
	rows, err := c.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE "+name+nulls, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	plan = strings.Join(lines, "\n")
	assert.Contains(t, plan, strings.TrimPrefix(index, "COVERING INDEX "))
	assert.NotContains(t, plan, "Seq Scan on tq_task")
	return plan
}
