package mission

import (
	"encoding/csv"
	"io/fs"
	"strings"
	"testing"
)

func TestExamplesAreThere(t *testing.T) {
	units, err := fs.Glob(Examples(), "units/*.toml")
	if err != nil || len(units) == 0 {
		t.Fatalf("units: %v, %v", units, err)
	}
	file, err := Examples().Open("data/seattle-weather.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 1462 || strings.Join(rows[0], ",") != "date,precipitation,temp_max,temp_min,wind,weather" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
