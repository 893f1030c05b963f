package bench

import (
	"math"
	"slices"
)

// Figure is a median with its range, four digits of each.
type Figure struct{ Med, Min, Max float64 }

// sample is what one run of a phase measured, by the field's name.
type sample map[string]float64

func figures(all map[string][]float64) map[string]Figure {
	out := make(map[string]Figure, len(all))
	for name, values := range all {
		slices.Sort(values)
		out[name] = Figure{round(values[len(values)/2]), round(values[0]), round(values[len(values)-1])}
	}
	return out
}

// round keeps four significant digits; what is no number is zero.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	p := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*p) / p
}

// quantile of sorted values.
func quantile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*percent/100]
}
