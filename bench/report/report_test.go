package main

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/bench/internal/measure"
	"github.com/ambit-go/ambit/bench/internal/usl"
)

var update = flag.Bool("update", false, "write the pages of testdata")

// golden are the results of a run that never was.
func golden() *results {
	all := &results{rows: []measure.Row{
		{ID: "B1", What: "Execute, Await", Peer: "by hand", Unit: "ns", Ours: measure.Sample{50, 51, 52, 51, 50, 51}, Theirs: measure.Sample{100, 100, 101, 99, 100, 100}, Ratio: true,
			Budget: measure.AtMost(0.6), Memory: &measure.Memory{Allocs: 3, Bytes: 240, PeerAllocs: 7, PeerBytes: 610.2, Beside: true}},
		{ID: "B5b", What: "ForEach a|b", Peer: "pond", Unit: "ns", Ours: measure.Sample{1000, 1100}, Theirs: measure.Sample{900, 1500}, Ratio: true},
		{ID: "B5", What: "ForkJoin", Peer: "conc", Unit: "ns", Ours: measure.Sample{10, 20, 10, 30, 10, 12}, Theirs: measure.Sample{10, 10, 10, 10, 10, 10}, Ratio: true, Budget: measure.AtMost(1.4)},
		{ID: "B8", What: "Schedule", Unit: "ns", Ours: measure.Sample{130, 131, 129}, Budget: measure.AtMost(120), Memory: &measure.Memory{Allocs: 1, Bytes: 64}},
		{ID: "T1", What: "enqueue", Peer: "asynq", Unit: "/s", Ours: measure.Sample{40_000, 41_000}, Theirs: measure.Sample{30_000, 30_000}, Ratio: true, Budget: measure.AtLeast(1.1)},
		{ID: "T3", What: "late, p99", Peer: "asynq", Unit: "ms", Ours: measure.Sample{5}, Theirs: measure.Sample{2000}, Budget: measure.AtMost(20), Once: true},
	}}
	law := func(l usl.Law, ns ...int) (points []measure.Point) {
		for _, n := range ns {
			x := l.At(float64(n))
			points = append(points, measure.Point{N: n, X: measure.Sample{x, 0.99 * x, 1.01 * x}})
		}
		return points
	}
	all.curves = []measure.Curve{
		{ID: "S1", Group: "async", What: "Execute", Axis: "workers", Points: law(usl.Law{Lambda: 1e6, Sigma: 0.1, Kappa: 0.01}, 1, 2, 4, 8, 16, 32)},
		{ID: "S2", Group: "async", What: "Execute", Axis: "processors", Points: law(usl.Law{Lambda: 1e6, Sigma: 0.1}, 1, 2)},
		{ID: "S5", Group: "async", What: "waits", Axis: "workers", Waits: true, Points: law(usl.Law{Lambda: 900, Sigma: 0.01}, 1, 2, 4, 8)},
		{ID: "S14", Group: "taskqueue", What: "group commit", Axis: "producers", Points: []measure.Point{{N: 1, X: measure.Sample{10}}, {N: 2, X: measure.Sample{60}}, {N: 4, X: measure.Sample{300}}, {N: 8, X: measure.Sample{200}}}},
	}
	all.queues = []measure.Queue{{ID: "S20", Jobs: 100, Load: 0.9, Service: 3e6, Arrivals: 1, Services: 0.9, Waited: 21e6, Kingman: 25.7e6}, {ID: "S20", Jobs: 100, Load: 1.01, Service: 3e6, Waited: 99e6}}
	all.ran = []measure.Ran{
		{Program: "budgets", Go: "go1.26.0", System: "linux/amd64", Cores: 2, Began: "2026-11-01", Quick: true, Load: 0.5, Took: 60},
		{Program: "kvqueue", Go: "go1.26.0", System: "linux/amd64", Cores: 2, Began: "2026-11-01", Quick: true, Load: 0.7, Missing: "etcd is not installed"},
	}
	return all
}

func TestPages(t *testing.T) {
	docs := t.TempDir()
	require.NoError(t, golden().write(docs))
	for _, name := range []string{"performance.md", "scalability.md"} {
		got, err := os.ReadFile(filepath.Join(docs, name))
		require.NoError(t, err)
		want := filepath.Join("testdata", strings.TrimSuffix(name, ".md")+".golden") // not a page: its links lead nowhere
		if *update {
			require.NoError(t, os.WriteFile(want, got, 0o666))
		}
		expected, err := os.ReadFile(want)
		require.NoError(t, err)
		require.Equal(t, string(expected), string(got), "go test ./report -update writes it, if it is what you mean")
		for _, link := range regexp.MustCompile(`\(pictures/[^)]+\)`).FindAllString(string(got), -1) {
			picture, err := os.ReadFile(filepath.Join(docs, strings.Trim(link, "()")))
			require.NoError(t, err)
			require.Contains(t, string(picture), "<svg")
		}
	}
}

func TestNoiseIsSaid(t *testing.T) {
	all := golden()
	require.Contains(t, all.noise(), "5 budgets 2 have no verdict")
	all.rows = all.rows[:1]
	require.NotContains(t, all.noise(), "The noise was high")
	all.ran[0].Load = 2.5
	require.Contains(t, all.noise(), "The noise was high")
	all.ran[0].Load = 0
	all.rows[0].Ours = measure.Sample{50, 90, 30, 60, 50, 51}
	require.Contains(t, all.noise(), "The noise was high")
}

func TestNoiseOfCurvesIsSaid(t *testing.T) {
	all := golden()
	require.Contains(t, all.noiseOfCurves(), "of 4 curves 2 have no fit")
	require.NotContains(t, all.noiseOfCurves(), "The noise was high")
	all.ran[0].Load = 2.5
	require.Contains(t, all.noiseOfCurves(), "The noise was high")
	all.ran[0].Load = 0
	for i := range all.curves[0].Points {
		all.curves[0].Points[i].X = measure.Sample{10, 20, 5}
	}
	all.curves = all.curves[:1]
	require.Contains(t, all.noiseOfCurves(), "The noise was high")
}

func TestWhereACurveStops(t *testing.T) {
	curve := func(xs ...float64) measure.Curve {
		c := measure.Curve{}
		for i, x := range xs {
			c.Points = append(c.Points, measure.Point{N: 1 << i, X: measure.Sample{x}})
		}
		return c
	}
	for _, c := range []struct {
		xs           []float64
		most, enough int
	}{
		{[]float64{10, 20, 40, 80}, 8, 8},
		{[]float64{10, 20, 40, 41, 42}, 16, 4},
		{[]float64{10, 9, 8}, 1, 1},
		{[]float64{10, 20, 19, 5}, 2, 2},
	} {
		most, enough := best(curve(c.xs...))
		require.Equal(t, []int{c.most, c.enough}, []int{most.N, enough.N}, "%v", c.xs)
	}
	_, why := fitted(curve(10, 20, 30))
	require.Contains(t, why, "3 points")
	_, why = fitted(curve(10, 60, 300, 200))
	require.Contains(t, why, "no fit")
	_, why = fitted(curve(10, 20, 40, 80))
	require.Empty(t, why)
}

func TestRates(t *testing.T) {
	for x, want := range map[float64]string{1234567: "1.23 M/s", 999_999.9: "1 M/s", 999.9: "1 k/s", 45_678: "45.7 k/s", 12.345: "12.3 /s", math.Inf(1): "no bound"} {
		require.Equal(t, want, rate(x))
	}
}

func TestProgramsOfAChoice(t *testing.T) {
	chosen := func(only string) (names []string) {
		for _, p := range programs {
			if n := p.chosen(regexp.MustCompile("^(" + only + ")$")); len(n) > 0 {
				names = append(names, p.name+" "+strings.Join(n, ","))
			}
		}
		return names
	}
	require.Equal(t, []string{"budgets B1"}, chosen("B1"), "not B10 to B15")
	require.Equal(t, []string{"budgets B7", "scaling S20", "locks L5"}, chosen("B7|S20|L5"))
	require.Equal(t, []string{"taskqueue T1,T2,T3,T4,T5,T6,T7,T8,T9,T10"}, chosen("T.+"))
	require.Empty(t, chosen("Q1"))
	cfg := config{only: regexp.MustCompile("^Q1$")}
	require.ErrorContains(t, measureAll(t.Context(), cfg, func(measure.Record) {}), "nothing has such a number")
	require.Equal(t, []string{"kvqueue K3,K6"}, chosen("K3|K6"))
	require.Equal(t, "^(TestOneProcess|TestOrder|TestTable)$", tests(kvTests, []string{"K1", "K4", "K5"}))
	require.Equal(t, "^(TestAThousandWaiters|TestContended|TestUncontended)$", tests(lockTests, []string{"L1", "L5", "L2"}))
}

func TestEveryRowOfAPageHasAGroup(t *testing.T) {
	for _, p := range programs {
		for _, n := range p.numbers {
			if p.name == "scaling" {
				continue
			}
			in := 0
			for _, g := range groups {
				if g.holds(n) {
					in++
				}
			}
			require.Equal(t, 1, in, n)
		}
	}
}

// Rows that are measured anew take the place of those that were kept, and the rest stays.
func TestSomeRowsAreMeasuredAnew(t *testing.T) {
	all := golden()
	rows, curves := len(all.rows), len(all.curves)
	all.forget(nil)
	require.Len(t, all.records(), rows+curves+len(all.queues)+len(all.ran))
	all.forget(regexp.MustCompile(`^(S1|S20|K1|` + all.rows[0].ID + `)$`))
	require.Less(t, len(all.rows), rows)
	require.Len(t, all.curves, curves-1)
	require.Empty(t, all.queues)
	require.Len(t, all.ran, 2, "the rest of kvqueue is still not measured")
	all.forget(regexp.MustCompile(`^K\d$`))
	require.Len(t, all.ran, 1, "kvqueue has another chance")
}
