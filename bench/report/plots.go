package main

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ambit-go/ambit/bench/internal/measure"
)

func init() {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
}

// Colours of verdicts, and of curves in their order; each can be told from the others without red and green.
var (
	within   = color.NRGBA{0x0b, 0x6e, 0x99, 0xff}
	over     = color.NRGBA{0xc4, 0x4e, 0x00, 0xff}
	unclear  = color.NRGBA{0x88, 0x88, 0x88, 0xff}
	budget   = color.NRGBA{0x22, 0x22, 0x22, 0xff}
	ofCurves = []color.Color{within, over, color.NRGBA{0x5b, 0x8c, 0x2a, 0xff}, color.NRGBA{0x7b, 0x3f, 0x9e, 0xff}, budget}
)

// A bar is what a row takes of its budget, with the interval; 1 is the budget.
type bar struct {
	name             string
	share, low, high float64
	verdict          measure.Verdict
}

// barsOf returns the bars of the rows that have a budget. A small share is good, whichever way the budget is.
func barsOf(rows []measure.Row) (bars []bar) {
	for _, r := range rows {
		if !r.Budget.Set || r.Budget.Limit == 0 || r.Unit == "allocations" || r.Value().Median() <= 0 {
			continue // counted exactly, or not to be drawn on a logarithmic axis
		}
		v := r.Value()
		low, high := v.Interval()
		b := bar{labelled(r), v.Median() / r.Budget.Limit, low / r.Budget.Limit, high / r.Budget.Limit, r.Verdict()}
		if r.Budget.AtLeast {
			b.share, b.low, b.high = 1/b.share, 1/b.high, 1/b.low
		}
		b.low, b.high = max(b.low, b.share/16), min(b.high, b.share*16)
		bars = append(bars, b)
	}
	return bars
}

// labelled is the name of a row, with room behind it: the font of who reads may be wider than ours.
func labelled(r measure.Row) string {
	const most = 64
	name := r.ID + " " + r.What
	if r.Peer != "" {
		name += " / " + r.Peer
	}
	letters := []rune(name)
	if len(letters) > most {
		letters = append(letters[:most-1], '…')
	}
	return string(letters) + strings.Repeat("\u00a0", len(letters)/5+2)
}

// drawBudgets draws what rows take of their budgets, if any has one.
func drawBudgets(file string, rows []measure.Row) (drawn bool, err error) {
	bars := barsOf(rows)
	if len(bars) == 0 {
		return false, nil
	}
	p := plot.New()
	p.X.Label.Text = "measured / budget: left of 1 is within"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powersOfTwo{}
	names := make([]string, len(bars))
	for i, b := range bars {
		y := float64(len(bars) - 1 - i)
		names[len(bars)-1-i] = b.name
		c := colourOf(b.verdict)
		line, err := plotter.NewLine(plotter.XYs{{X: b.low, Y: y}, {X: b.high, Y: y}})
		if err != nil {
			return false, err
		}
		line.Color, line.Width = c, vg.Points(2)
		dot, err := plotter.NewScatter(plotter.XYs{{X: b.share, Y: y}})
		if err != nil {
			return false, err
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3.5), Shape: draw.CircleGlyph{}}
		p.Add(line, dot)
	}
	limit, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(bars)) - 0.5}})
	if err != nil {
		return false, err
	}
	limit.Color, limit.Width = budget, vg.Points(1)
	p.Add(limit)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(bars))-0.5
	p.X.Min, p.X.Max = min(0.9*p.X.Min, 0.5), max(1.1*p.X.Max, 2)
	p.Y.Tick.Label.Font.Size = vg.Points(9)
	return true, save(p, file, 24*vg.Centimeter, vg.Length(2+0.55*float64(len(bars)))*vg.Centimeter)
}

func colourOf(v measure.Verdict) color.Color {
	switch v {
	case measure.Within:
		return within
	case measure.Over:
		return over
	}
	return unclear
}

// drawCurves draws throughputs as multiples of what one does by the law, or of the first point where there is no law.
func drawCurves(file string, curves []measure.Curve) error {
	p := plot.New()
	p.X.Label.Text = "workers, producers, consumers or processors (N)"
	p.Y.Label.Text = "throughput, as a multiple of one"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powersOfTwo{}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powersOfTwo{}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.TextStyle.Font.Size = vg.Points(3), vg.Points(9)
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		colour := ofCurves[i%len(ofCurves)]
		if err := addCurve(p, c, colour); err != nil {
			return err
		}
	}
	p.X.Min, p.X.Max = 0.9, max(p.X.Max*1.1, 2.2)
	p.Y.Min, p.Y.Max = min(p.Y.Min, 0.9), max(4*p.Y.Max, 2.2) // room for the legend
	return save(p, file, 20*vg.Centimeter, 11*vg.Centimeter)
}

func addCurve(p *plot.Plot, c measure.Curve, colour color.Color) error {
	law, why := fitted(c)
	one := c.Points[0].X.Median()
	if why == "" {
		one = law.Lambda
	}
	var dots, curve plotter.XYs
	for _, point := range c.Points {
		n, x := float64(point.N), point.X.Median()/one
		dots = append(dots, plotter.XY{X: n, Y: x})
		low, high := point.X.Interval()
		spread, err := plotter.NewLine(plotter.XYs{{X: n, Y: low / one}, {X: n, Y: high / one}})
		if err != nil {
			return err
		}
		spread.Color = colour
		p.Add(spread)
	}
	scatter, err := plotter.NewScatter(dots)
	if err != nil {
		return err
	}
	scatter.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(scatter)
	for n := 1.0; n <= dots[len(dots)-1].X; n *= 1.05 {
		curve = append(curve, plotter.XY{X: n, Y: law.At(n) / one})
	}
	if why != "" {
		curve = dots
	}
	line, err := plotter.NewLine(curve)
	if err != nil {
		return err
	}
	line.Color = colour
	if why != "" {
		line.Dashes = []vg.Length{vg.Points(2), vg.Points(3)}
	}
	p.Add(line)
	p.Legend.Add(c.ID+" "+c.What+", by "+c.Axis, line, scatter)
	return nil
}

// powersOfTwo are the marks of a logarithmic axis.
type powersOfTwo struct{}

func (powersOfTwo) Ticks(low, high float64) (ticks []plot.Tick) {
	for n := math.Exp2(math.Ceil(math.Log2(low))); n <= high; n *= 2 {
		ticks = append(ticks, plot.Tick{Value: n, Label: strconv.FormatFloat(n, 'g', -1, 64)})
	}
	return ticks
}

// save writes a plot as SVG.
func save(p *plot.Plot, file string, width, height vg.Length) error {
	canvas := vgsvg.New(width, height)
	const margin = 0.3 * vg.Centimeter // fonts differ, and a label may be wider than it is taken for
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o666)
}
