package taskqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nexts returns the next times of a schedule after from, as layout writes them.
func nexts(t *testing.T, schedule string, from time.Time, n int, layout string) (all []string) {
	p := &periodic{zone: from.Location()}
	require.NoError(t, p.parse(schedule))
	for at := p.next(from); len(all) < n; at = p.next(at) {
		all = append(all, at.In(from.Location()).Format(layout))
	}
	return all
}

// Where the clocks change: 2:30 is not there once in March, and twice in October.
func TestATickWhereTheClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		day  time.Time
		want []string
	}{
		{time.Date(2026, 3, 28, 12, 0, 0, 0, berlin), []string{"29 03:30 CEST", "30 02:30 CEST"}},
		{time.Date(2026, 10, 24, 12, 0, 0, 0, berlin), []string{"25 02:30 CEST", "26 02:30 CET"}},
	} {
		assert.Equal(t, c.want, nexts(t, "30 2 * * *", c.day, 2, "2 15:04 MST"))
	}
	night := time.Date(2026, 10, 25, 1, 0, 0, 0, berlin)
	twice := []string{"1:30 CEST", "2:30 CEST", "2:30 CET", "3:30 CET"}
	assert.Equal(t, twice, nexts(t, "30 * * * *", night, 4, "3:04 MST"))
	assert.Equal(t, twice[2:], nexts(t, "30 */1 * * *", night.Add(2*time.Hour), 2, "3:04 MST"))
	howe, err := time.LoadLocation("Australia/Lord_Howe") // half an hour
	require.NoError(t, err)
	assert.Equal(t, []string{"5 01:45 +11", "6 01:45 +1030"}, nexts(t, "45 1 * * *", time.Date(2026, 4, 4, 12, 0, 0, 0, howe), 2, "2 15:04 MST"))
}

// The day of the month and the day of the week: one that fits either, as in crontab.
func TestADayThatFitsEither(t *testing.T) {
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, []string{"Fri 7", "Thu 13", "Fri 14"}, nexts(t, "0 12 13 * FRI", from, 3, "Mon 2"))
}

func TestAnIntervalTicksAtWholeMultiples(t *testing.T) {
	from := time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)
	assert.Equal(t, []string{"00:01:30", "00:03:00"}, nexts(t, "@every 90s", from, 2, time.TimeOnly))
	assert.Equal(t, []string{"00:01:30", "00:03:00"}, nexts(t, "@every 1m30s", from, 2, time.TimeOnly))
}

// An equal schedule has the same text, and only then.
func TestTheTextOfASchedule(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		schedule string
		zone     *time.Location
		text     string
	}{
		{"@every 90s", time.UTC, "@every 1m30s"},
		{"@every 1m30s", berlin, "@every 1m30s"},
		{" @daily ", time.UTC, "@daily"},
		{"@daily", berlin, "CRON_TZ=Europe/Berlin @daily"},
		{"TZ=Europe/Berlin @daily", time.UTC, "CRON_TZ=Europe/Berlin @daily"},
		{"CRON_TZ=UTC @daily", berlin, "@daily"},
		{"@daily", time.FixedZone("UTC", 0), "@daily"}, // as time.Local is where no zone is set
	} {
		p := &periodic{zone: c.zone}
		require.NoError(t, p.parse(c.schedule))
		assert.Equal(t, c.text, p.text)
		again := &periodic{zone: time.UTC}
		require.NoError(t, again.parse(p.text))
		assert.Equal(t, p.text, again.text, "another process reads it")
		at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
		assert.True(t, p.next(at).Equal(again.next(at)))
	}
}
