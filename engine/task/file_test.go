package task

import (
	"strings"
	"testing"
)

var sum64 = strings.Repeat("0f", 32)

// What a rule says of a path it says of the file's name, which the controller
// and the executor see alike.
func TestRuleOfAFile(t *testing.T) {
	csv := File{Share: "s", Name: "r-1/u-1.1/a/d.csv", Size: 1, Sum: sum64}.String()
	r := Rule{Name: "data", Kind: Path, Pattern: `^a/.*\.csv$`, MaxLength: 7}
	if err := r.Prepare(); err != nil {
		t.Fatal(err)
	}
	for value, ok := range map[string]bool{
		csv: true, "a/d.csv": true, "a/b.txt": false, "a/longer.csv": false,
		strings.Replace(csv, "d.csv", "d.txt", 1): false, "share:x": false, csv + "0": false,
	} {
		if err := r.Check(value); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// What is parsed is written the same again, and never leads out of the share.
func FuzzFile(f *testing.F) {
	f.Add("share:s/r-1/u-1.1/d.csv#5," + sum64)
	f.Add("share:s/a#1,b/c#0," + sum64)
	f.Add("share:s/../x#5," + sum64)
	f.Fuzz(func(t *testing.T, text string) {
		file, handed, err := ParseFile(text)
		if handed != strings.HasPrefix(text, filePrefix) {
			t.Fatalf("%q: handed %v", text, handed)
		}
		if !handed || err != nil {
			return
		}
		again, _, err := ParseFile(file.String())
		if err != nil || again != file {
			t.Fatalf("%q: %+v is read again as %+v: %v", text, file, again, err)
		}
		for part := range strings.SplitSeq(file.Name, "/") {
			if part == ".." || part == "" {
				t.Fatalf("%q leads to %q", text, file.Name)
			}
		}
	})
}

func TestShown(t *testing.T) {
	f := File{Share: "s1", Name: "r-1/fetch-1.1/out/data.csv", Size: 12, Sum: strings.Repeat("ab", 32)}
	for value, want := range map[string]string{
		f.String():       "out/data.csv (12 bytes, ababab)",
		"share:not/one":  "share:not/one",
		"days, as it is": "days, as it is",
	} {
		if got := Shown(value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
