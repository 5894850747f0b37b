package measure

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, Sample{3, 1, 2}.Median())
	require.Equal(t, 2.5, Sample{4, 1, 2, 3}.Median())
	require.True(t, math.IsNaN(Sample{}.Median()))
	s := Sample{3, 1, 2}
	_ = s.Median()
	require.Equal(t, Sample{3, 1, 2}, s, "the order of the rounds stays")
}

func upTo(n int) (s Sample) {
	for i := range n {
		s = append(s, float64(n-i))
	}
	return s
}

// The numbers are those of tables of the sign test, for 95 %.
func TestIntervalIsThatOfTheSignTest(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
	}{{1, 1, 1}, {3, 1, 3}, {5, 1, 5}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {11, 2, 10}, {12, 3, 10}, {15, 4, 12}, {20, 6, 15}, {25, 8, 18}} {
		low, high := upTo(c.n).Interval()
		require.Equal(t, []float64{c.low, c.high}, []float64{low, high}, "of %d", c.n)
	}
}

func TestIntervalHoldsTheMedianAsOftenAsItSays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	held, times := 0, 5000
	for range times {
		var s Sample
		for range 11 {
			s = append(s, math.Exp(random.NormFloat64())) // its median is 1
		}
		if low, high := s.Interval(); low <= 1 && 1 <= high {
			held++
		}
	}
	require.Greater(t, held, times*95/100)
	require.Less(t, held, times, "it can be wrong")
}

func TestVerdict(t *testing.T) {
	quiet := Sample{0.98, 1, 1.01, 0.99, 1, 1.02, 0.97, 1, 1.01, 1, 0.99}
	noisy := Sample{0.6, 1.4, 1, 0.7, 1.3, 1.1, 0.5, 0.9, 1.6, 1, 0.8}
	oneBad := Sample{0.98, 1, 1.01, 0.99, 1, 50, 0.97, 1, 1.01, 1, 0.99}
	for _, c := range []struct {
		name   string
		sample Sample
		budget Budget
		want   Verdict
	}{
		{"no budget", quiet, Budget{}, NoBudget},
		{"nothing measured", nil, AtMost(1), NoBudget},
		{"well below", quiet, AtMost(1.2), Within},
		{"well above", quiet, AtMost(0.8), Over},
		{"the budget is in the interval", quiet, AtMost(1), Unclear},
		{"a wide spread around the budget", noisy, AtMost(1.1), Unclear},
		{"a wide spread far below the budget", noisy, AtMost(2), Within},
		{"a wide spread far above the budget", noisy, AtMost(0.4), Over},
		{"a round that was held up decides nothing", oneBad, AtMost(1.2), Within},
		{"the last digit decides", Sample{1.004}, AtMost(1), Within},
		{"beyond the last digit", Sample{1.006}, AtMost(1), Over},
		{"at least, and more", quiet, AtLeast(0.8), Within},
		{"at least, and less", quiet, AtLeast(1.2), Over},
		{"at least, unclear", noisy, AtLeast(1), Unclear},
		{"at most 0, and it is", Sample{0}, AtMost(0), Within},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.budget.Judge(c.sample, 0.005), c.want.String())
		})
	}
}

func TestARowThatWasMeasuredOnceHasNoVerdict(t *testing.T) {
	r := Row{Unit: "ms", Ours: Sample{5}, Budget: AtMost(20)}
	require.Equal(t, Within, r.Verdict())
	r.Once = true
	require.Equal(t, Single, r.Verdict())
	require.Equal(t, Single, Row{Ours: Sample{1}, Theirs: Sample{2}, Ratio: true, Budget: AtMost(1)}.Verdict())
}

func TestAMedianIsOverWithAndWithoutAVerdict(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{Row{Ours: Sample{5, 7, 9}, Budget: AtMost(6)}, true},
		{Row{Ours: Sample{5, 5, 9}, Budget: AtMost(6)}, false},
		{Row{Ours: Sample{7}, Budget: AtMost(6), Once: true}, true},
		{Row{Ours: Sample{2, 2, 8}, Theirs: Sample{1, 1, 8}, Ratio: true, Budget: AtLeast(3)}, true},
		{Row{Unit: "ns", Ours: Sample{120.4}, Budget: AtMost(120)}, false},
		{Row{Ours: Sample{5}}, false},
	} {
		require.Equal(t, c.want, c.row.MedianOver(), "%v", c.row)
	}
}

// A value is judged by the digits that are printed, and allocations without what the runtime makes beside.
func TestSlackOfRows(t *testing.T) {
	for _, c := range []struct {
		unit         string
		value, limit float64
		want         Verdict
	}{
		{"ns", 120.4, 120, Within}, {"ns", 120.6, 120, Over}, {"×", 1.004, 1, Within}, {"×", 1.04, 1, Over},
		{"allocations", 2.05, 2, Within}, {"allocations", 2.1, 2, Over}, {"allocations", 0.05, 0, Within},
	} {
		require.Equal(t, c.want, Row{Unit: c.unit, Ours: Sample{c.value}, Budget: AtMost(c.limit)}.Verdict(), "%v", c)
	}
}

func TestTurnsGoRound(t *testing.T) {
	var order strings.Builder
	run := func(name string, value float64) func() float64 {
		return func() float64 { order.WriteString(name); value++; return value }
	}
	got := Turns(4, run("a", 0), run("b", 10), run("c", 20))
	require.Equal(t, "abcbcacababc", order.String())
	require.Equal(t, []Sample{{1, 2, 3, 4}, {11, 12, 13, 14}, {21, 22, 23, 24}}, got)
}

func TestRowsAsTheyArePrinted(t *testing.T) {
	r := Row{ID: "B1", What: "Execute", Peer: "by hand", Unit: "ns", Ours: Sample{100, 110, 120}, Theirs: Sample{200, 200, 200}, Ratio: true, Budget: AtMost(0.6)}
	require.Equal(t, "0.55 × (0.50–0.60)", r.Measured())
	require.Equal(t, "≤ 0.60 ×", r.Bound())
	var out strings.Builder
	r.Print(&out)
	require.Regexp(t, `^B1 +Execute / by hand +0\.55 × \(0\.50–0\.60\) +≤ 0\.60 × +within budget\n$`, out.String())
}

func TestReadFindsWhatWasWritten(t *testing.T) {
	records := []Record{
		{Row: &Row{ID: "B1", What: "a | b", Unit: "ns", Ours: Sample{1, 2}, Budget: AtMost(3), Memory: &Memory{Allocs: 1}}},
		{Curve: &Curve{ID: "S1", Points: []Point{{1, Sample{5}}}}},
		{Queue: &Queue{ID: "S20", Load: 0.5}},
		{Ran: &Ran{Program: "budgets", Quick: true}},
	}
	var out bytes.Buffer
	out.WriteString("some test says something\n")
	for _, r := range records {
		require.NoError(t, Write(&out, r))
	}
	var got []Record
	var others []string
	require.NoError(t, Read(&out, func(r Record) { got = append(got, r) }, func(line string) { others = append(others, line) }))
	require.Equal(t, records, got)
	require.Equal(t, []string{"some test says something"}, others)

	require.ErrorContains(t, Read(strings.NewReader("measured: {"), func(Record) {}, func(string) {}), "{")
}
