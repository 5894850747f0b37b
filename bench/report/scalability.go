package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

// scalability is the page of the curves.
func (all *results) scalability(docs string) (string, error) {
	var b strings.Builder
	b.WriteString("# Scalability\n\n" + generated)
	b.WriteString("How throughput grows with workers, producers, consumers and processors, and where that stops. `make bench` measures it and writes this page;\n" +
		"the command at the end of a row measures that row alone.\n\n")
	b.WriteString(all.machine() + all.fewCores() + all.noiseOfCurves() + lawExplained)
	for _, name := range all.curveGroups() {
		curves := all.curvesOf(name)
		picture := "scalability-" + name + ".svg"
		if err := drawCurves(filepath.Join(docs, "pictures", picture), curves); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "## %s\n\n![Throughput of %s, measured and fitted](pictures/%s)\n\n%s\n%s", name, name, picture, tableOfCurves(curves), sentences(curves))
	}
	b.WriteString(all.little() + all.kingman())
	return b.String(), nil
}

const lawExplained = `## The law

Gunther's universal scalability law is fitted to each curve, by least squares of the relative deviations:

    X(N) = λ N / (1 + σ (N-1) + κ N (N-1))

- **λ** is the throughput of one.
- **σ**, contention, is the share of the work that only one can do at a time: a lock, a queue, a core. With κ = 0 the law is **Amdahl's**: however many work,
  the throughput stays below λ / σ. So work that only computes has a large σ as soon as there are more workers than cores, whatever the library does.
- **κ**, coherency, is what each pair spends to agree: cache lines and locks that go to and fro. With it the throughput has a peak, at N = √((1-σ)/κ), and falls behind it.
- *enough* is the first N that has 90 % of the best throughput that was measured. It is a measurement and needs no law.
- Throughput that grows faster than N, as with group commit, is outside the law; σ and κ are not below 0. Where the law is off by more than 25 % at a point no parameters are told.

`

// fewCores says what a small machine cannot tell.
func (all *results) fewCores() string {
	_, cores := all.busiest()
	text := fmt.Sprintf("The machine has %d cores. ", cores)
	if cores < 4 {
		text += fmt.Sprintf("So these figures say nothing of GOMAXPROCS above %d, and the curves over processors have too few points for a fit: "+
			"run `make bench` on a larger machine for those. Workers, producers and consumers are varied beyond the number of cores: there they show what contention and "+
			"switching cost, not how much more cores would do.", cores)
	} else {
		text += "Curves over processors end there."
	}
	return text + "\n\n"
}

func (all *results) curveGroups() (names []string) {
	for _, c := range all.curves {
		if len(names) == 0 || names[len(names)-1] != c.Group {
			names = append(names, c.Group)
		}
	}
	return names
}

func (all *results) curvesOf(name string) (curves []measure.Curve) {
	for _, c := range all.curves {
		if c.Group == name {
			curves = append(curves, c)
		}
	}
	return curves
}

func tableOfCurves(curves []measure.Curve) string {
	var b strings.Builder
	b.WriteString("| | work | over | one (λ) | contention σ | coherency κ | peak at N | never above | best measured | enough N | alone |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range curves {
		law, why := fitted(c)
		cells := []string{c.ID, escaped(c.What), c.Axis, why, "", "", "", ""}
		if why == "" {
			cells = append(cells[:3], rate(law.Lambda), fmt.Sprintf("%.3f", law.Sigma), fmt.Sprintf("%.5f", law.Kappa), peak(c, law), rate(law.Most()))
		}
		most, enough := best(c)
		cells = append(cells, fmt.Sprintf("%s at %d", rate(most.X.Median()), most.N), fmt.Sprint(enough.N), fmt.Sprintf("`make bench ONLY=%s`", c.ID))
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// sentences say what holds each curve back.
func sentences(curves []measure.Curve) string {
	var b strings.Builder
	for _, c := range curves {
		law, why := fitted(c)
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		gain := last.X.Median() / first.X.Median()
		fmt.Fprintf(&b, "- **%s**: with %d %s there is %.2f times the throughput of %d.", c.ID, last.N, c.Axis, gain, first.N)
		switch {
		case why != "":
		case c.Waits:
			fmt.Fprintf(&b, " The work waits, so %s are not bound by cores: %.1f %% of a unit is done one after another.", c.Axis, 100*law.Sigma)
		case law.Kappa > 0 && law.Peak() <= float64(last.N):
			fmt.Fprintf(&b, " Beyond %.0f the %s cost each other more than they add.", law.Peak(), c.Axis)
		case law.Sigma > 0:
			fmt.Fprintf(&b, " By Amdahl no number of %s gives more than %.1f times one.", c.Axis, 1/law.Sigma)
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// little explains the curves of work that waits.
func (all *results) little() string {
	var b strings.Builder
	b.WriteString("## Little's law: what more workers buy\n\n" +
		"The number of units under way is the throughput times the time that each is under way: L = X W. With N workers that are always busy L is N, so N / X is how long\n" +
		"a unit occupies a worker. Where units wait for 1 ms it stays near that as long as nothing else holds them back; where it grows, workers wait for each other or for a core.\n\n" +
		"| | work | N | throughput X | N / X |\n|---|---|---|---|---|\n")
	rows := 0
	for _, c := range all.curves {
		if !c.Waits {
			continue
		}
		for _, p := range c.Points {
			x := p.X.Median()
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %.2f ms |\n", c.ID, escaped(c.What), p.N, rate(x), 1000*float64(p.N)/x)
			rows++
		}
	}
	if rows == 0 {
		return ""
	}
	return b.String() + "\n"
}

// kingman explains how long jobs wait.
func (all *results) kingman() string {
	if len(all.queues) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Kingman's formula: what a busy consumer costs\n\n" +
		"Jobs come at random to one consumer of a jobqueue. By Kingman they wait about ρ / (1-ρ) × (c²ₐ + c²ₛ) / 2 × τ, where ρ is the share of the time in which the consumer is busy,\n" +
		"τ how long a job takes, and c² the squared coefficients of variation of the times between arrivals and of the jobs. All of these are measured here. So the last tenth\n" +
		"of utilization is the dearest: plan consumers for the wait that you can bear, not for the work alone. The nearer ρ is to 1, the longer one has to measure: a short run is far off there.\n\n" +
		"| | jobs | busy ρ | a job takes τ | c²ₐ | c²ₛ | jobs wait | Kingman says | alone |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, q := range all.queues {
		says := fmt.Sprintf("%.2f ms", q.Kingman/1e6)
		if q.Load >= 1 {
			says = "without bound: more jobs come than are done"
		}
		fmt.Fprintf(&b, "| %s | %d | %.2f | %.2f ms | %.2f | %.2f | %.2f ms | %s | `make bench ONLY=%s` |\n", q.ID, q.Jobs, q.Load, q.Service/1e6, q.Arrivals, q.Services, q.Waited/1e6, says, q.ID)
	}
	return b.String()
}
