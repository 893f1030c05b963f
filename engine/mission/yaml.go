package mission

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// fromYAML reads a text as nodes.
func fromYAML(file, text string) (*node, Faults) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return &node{form: aTable, at: place{1, 1}}, nil
	} else if err != nil {
		return nil, Faults{yamlSyntax(file, text, err)}
	}
	y := yamlTree{file: file}
	if err := decoder.Decode(&more); err == nil {
		y.fault(&more, "a second document: a file is one mission")
	} else if !errors.Is(err, io.EOF) {
		return nil, Faults{yamlSyntax(file, text, err)}
	}
	if len(document.Content) == 0 {
		return nil, Faults{faultAt(file, place{}, "holds nothing")}
	}
	root := y.build(document.Content[0], 0)
	if len(y.faults) > 0 {
		return nil, y.faults
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// unexpected are the beginnings of problems whose line the library counts from 0.
var unexpected = regexp.MustCompile(`^did not find expected (<|node|'-'|key|',')`)

// yamlSyntax is a fault of the language. The line is the one on which the thing
// begins that has no proper end; there is no column to be had.
func yamlSyntax(file, whole string, err error) Fault {
	text := err.Error()
	at := place{}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		at.line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if at.line == 0 || unexpected.MatchString(text) {
		at.line = min(at.line+1, strings.Count(whole, "\n")+1)
	}
	return faultAt(file, at, "what begins here is no YAML: %s", text)
}

// yamlTree turns the library's nodes into ours.
type yamlTree struct {
	file   string
	faults Faults
}

func (y *yamlTree) fault(n *yaml.Node, format string, args ...any) *node {
	at := place{n.Line, n.Column}
	y.faults.add(faultAt(y.file, at, format, args...))
	return &node{form: nothing, at: at}
}

func (y *yamlTree) build(n *yaml.Node, depth int) *node {
	if depth > deepest {
		return y.fault(n, "nests deeper than %d", deepest)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return y.table(n, depth)
	case yaml.SequenceNode:
		list := &node{form: aList, at: place{n.Line, n.Column}}
		for _, e := range n.Content {
			list.list = append(list.list, y.build(e, depth+1))
		}
		return list
	case yaml.ScalarNode:
		return y.plain(n)
	}
	return y.fault(n, "an alias (*%s): write the value itself", n.Value)
}

func (y *yamlTree) table(n *yaml.Node, depth int) *node {
	table := &node{form: aTable, at: place{n.Line, n.Column}}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch tag := key.ShortTag(); {
		case key.Kind != yaml.ScalarNode || tag == "!!null":
			y.fault(key, "a key is a plain text")
			continue
		case tag == "!!merge":
			y.fault(key, "a merge (<<): write the entries themselves")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			y.fault(key, "%s stands here twice: first in line %d", key.Value, line)
			continue
		}
		seen[key.Value] = key.Line
		table.fields = append(table.fields, field{key.Value, place{key.Line, key.Column}, y.build(value, depth+1)})
	}
	return table
}

// plain gives a value the text it would have in TOML.
func (y *yamlTree) plain(n *yaml.Node) *node {
	v := &node{at: place{n.Line, n.Column}, text: n.Value}
	var err error
	switch tag := n.ShortTag(); tag {
	case "!!str":
		v.form = aText
	case "!!null":
		v.form = nothing
	case "!!bool":
		var b bool
		err = n.Decode(&b)
		v.form, v.text = aBool, strconv.FormatBool(b)
	case "!!int":
		var i int64
		err = n.Decode(&i)
		v.form, v.text = aWhole, strconv.FormatInt(i, 10)
	case "!!float":
		var f float64
		err = n.Decode(&f)
		v.form, v.text = aNumber, formatNumber(f)
	case "!!timestamp":
		v.form = aTime
		if t, zoned := time.Parse(time.RFC3339Nano, n.Value); zoned == nil {
			v.text = t.Format(time.RFC3339Nano)
		}
	default:
		err = fmt.Errorf("%s is no type of a mission file", tag)
	}
	if err != nil {
		return y.fault(n, "%s: want a text, a number of 64 bits, true or false, or a time", quote(n.Value))
	}
	return v
}
