package top

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
)

const hostile = "a\x1b[2J\x1b]0;title\a\n\u202e"

// picture has queues and tasks whose names are of all kinds.
func picture(queues int) *look.Snapshot {
	now := time.Now()
	s := &look.Snapshot{At: now}
	names := []string{"mail", "世界の仕事", "👩‍💻🇩🇪e\u0301", hostile, strings.Repeat("long", 60)}
	for i := range queues {
		name := names[i%len(names)]
		if i >= len(names) {
			name += fmt.Sprint(i)
		}
		s.Queues = append(s.Queues, look.Queue{
			Name:        name,
			Settings:    taskqueue.Settings{Paused: i%2 == 0, Rate: 5, Concurrency: 3},
			States:      map[taskqueue.State]int64{taskqueue.StateReady: int64(i * 1000), taskqueue.StateRunning: 2, taskqueue.StateDead: int64(i), taskqueue.StateRetrying: 1},
			LateSeconds: float64(i), RateSeconds: 10, Rates: map[taskqueue.Counter]float64{taskqueue.CountDone: float64(i)},
		})
		task := look.Task{Queue: name, ID: "id of " + name, Type: "type" + name, Worker: "w" + name, StartedAt: now.Add(-time.Second), LeaseEnd: now.Add(time.Second),
			DueAt: now.Add(time.Hour), EndedAt: now.Add(-time.Hour), Error: "error of " + name + "\nsecond line", Progress: "half " + name, CancelRequested: i%2 == 0}
		s.Running, s.Dead, s.Retrying = append(s.Running, task), append(s.Dead, task), append(s.Retrying, task)
		s.Periodic = append(s.Periodic, look.Periodic{Queue: name, Name: "job " + name, Schedule: "@every 5m " + name, Last: now})
	}
	return s
}

func newTestModel(env ...string) *model {
	return newModel(Config{Name: "redis://somewhere:6379/0", Env: func(name string) string {
		for _, e := range env {
			if v, is := strings.CutPrefix(e, name+"="); is {
				return v
			}
		}
		return ""
	}}, true)
}

// styles are the sequences that frames may have.
var styles = regexp.MustCompile("\x1b\\[[0-9;]*[mG]")

func stripped(t *testing.T, lines []string) []string {
	t.Helper()
	var all []string
	for _, l := range lines {
		l = styles.ReplaceAllString(l, "")
		for _, r := range l {
			require.False(t, r < ' ' || r == 0x202e, "%q", l)
		}
		all = append(all, l)
	}
	return all
}

func TestAFrameFitsTheScreenWhateverItsSize(t *testing.T) {
	keys := []string{"", "1", "2", "3", "4", "a", "p", "h"}
	for _, queues := range []int{0, 1, 40} {
		for _, k := range keys {
			for _, width := range []int{1, 2, 20, 80, 300} {
				for _, height := range []int{1, 3, 10, 200} {
					m := newTestModel()
					m.width, m.height = width, height
					m.take(picture(queues), nil)
					m.key("pagedown")
					m.key(k)
					lines := stripped(t, m.frame())
					require.LessOrEqual(t, len(lines), height, "%d queues, key %q, %d×%d", queues, k, width, height)
					for _, l := range lines {
						require.LessOrEqual(t, displaywidth.String(l), width, "%d queues, key %q, %d×%d: %q", queues, k, width, height, l)
					}
				}
			}
		}
	}
}

func TestNumbersStandBelowEachOtherWhateverTheNames(t *testing.T) {
	m := newTestModel()
	m.width, m.height = 150, 40
	m.take(picture(5), nil)
	lines := stripped(t, m.frame())
	edge := -1
	for i, l := range lines {
		if at := strings.Index(l, "READY"); at > 0 {
			edge = displaywidth.String(l[:at+len("READY")])
			for _, row := range lines[i+1 : i+6] {
				number := regexp.MustCompile(`\s(\d[\d,]*)  `).FindStringSubmatchIndex(row)
				require.NotNil(t, number, row)
				assert.Equal(t, edge, displaywidth.String(row[:number[3]]), "%q", row)
			}
			break
		}
	}
	assert.Positive(t, edge)
}

func TestColoursAreLeftOutWhereNobodyWantsThem(t *testing.T) {
	colours := regexp.MustCompile("\x1b\\[[34][0-9]m")
	for _, none := range []bool{false, true} {
		m := newTestModel()
		if none {
			m = newTestModel("NO_COLOR=1")
		}
		m.width, m.height = 120, 30
		m.take(picture(5), nil)
		assert.Equal(t, !none, colours.MatchString(strings.Join(m.frame(), "")))
	}
}

func TestKeysSelectAndSort(t *testing.T) {
	m := newTestModel()
	m.width, m.height = 120, 30
	m.key("down") // nothing is known yet
	m.key("p")
	assert.Nil(t, m.ask)
	m.frame()
	m.take(picture(60), nil)
	first := m.selected
	m.key("down")
	assert.NotEqual(t, first, m.selected)
	m.key("up")
	m.key("up")
	assert.Equal(t, first, m.selected, "no further than the first")
	m.key("end")
	last := m.selected
	m.key("s")
	assert.Equal(t, last, m.selected, "what is selected stays so in another order")
	selected := 0
	for _, l := range m.frame() {
		if strings.HasPrefix(l, "\x1b["+inverse+"m") {
			selected++
		}
	}
	assert.Equal(t, 1, selected, "it is on the screen")
	for range len(orders) {
		m.key("S")
	}
	assert.Equal(t, "late", orders[m.order].name)
	m.take(picture(1), nil)
	assert.Equal(t, "mail", m.selected, "a queue that is gone is not selected any more")
	m.take(picture(0), nil)
	assert.Empty(t, m.selected)
}

func TestPausingAsksFirst(t *testing.T) {
	m := newTestModel()
	m.width, m.height = 80, 24
	m.take(picture(2), nil)
	assert.Equal(t, action{}, m.key("p"))
	assert.Contains(t, m.foot(), "resume queue mail? y or n", "it is paused")
	assert.Equal(t, action{}, m.key("q"), "anything but y is a no, and does not end")
	assert.Contains(t, m.foot(), "nothing was changed")
	m.key("p")
	assert.Equal(t, action{what: setPaused, queue: "mail", paused: false}, m.key("y"))
	m.key("down")
	m.key("p")
	assert.Equal(t, action{what: setPaused, queue: "世界の仕事", paused: true}, m.key("y"))
	m.key("p")
	assert.Equal(t, action{what: quit}, m.key("\x03"))
}

func TestAHeldPictureStays(t *testing.T) {
	m := newTestModel()
	m.width, m.height = 80, 24
	m.take(picture(2), nil)
	m.key(" ")
	m.take(picture(5), nil)
	assert.Len(t, m.now.Queues, 2)
	assert.Contains(t, strings.Join(m.frame(), ""), "HELD")
	m.key(" ")
	m.take(picture(5), nil)
	assert.Len(t, m.now.Queues, 5)
}

func TestAStoreThatDoesNotAnswerIsToldAboveTheLastPicture(t *testing.T) {
	m := newTestModel()
	m.width, m.height = 80, 24
	m.take(nil, fmt.Errorf("refused\x1b[2J"))
	text := strings.Join(stripped(t, m.frame()), "\n")
	assert.Contains(t, text, "does not answer: refused")
	m.take(picture(2), nil)
	m.take(m.now, fmt.Errorf("refused"))
	text = strings.Join(stripped(t, m.frame()), "\n")
	assert.Contains(t, text, "does not answer: refused")
	assert.Contains(t, text, "mail")
	m.take(picture(2), nil)
	assert.NotContains(t, strings.Join(m.frame(), "\n"), "does not answer")
}

func TestWhatIsTyped(t *testing.T) {
	for in, want := range map[string][]string{
		"q":                {"q"},
		"\x1b[A\x1b[Bj":    {"up", "down", "j"},
		"\x1bOA\x1bOH":     {"up", "home"},
		"\x1b[5~\x1b[6~":   {"pageup", "pagedown"},
		"\x1b":             {"escape"},
		"\x1b[1;5C":        nil,
		"\x1b[200~ab":      {"a", "b"},
		"ü世":               {"ü", "世"},
		"\x1b[":            nil,
		"\x1bO":            nil,
		"\xff":             {"\xff"},
		"\x1b\x1b[A":       {"escape", "up"},
		"\x1b[<0;10;10Mp":  {"p"},
		"\x1b[?1;2c\x1b[Z": {"backtab"},
	} {
		assert.Equal(t, want, typed([]byte(in)), "%q", in)
	}
}
