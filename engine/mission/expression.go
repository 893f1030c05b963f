package mission

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"apollo11/engine/task"
)

// statusWord is what a condition calls an upstream's state; no output may have
// that name.
const statusWord = "status"

// mostNodes bounds a condition.
const mostNodes = 400

// Expression is a condition, compiled. It always comes to an answer: it has
// comparisons, arithmetic, texts and logic, but no calls, loops or indexes. What
// has no value counts as 0, "" or false.
type Expression struct {
	text    string
	program *vm.Program
	reads   []operand
}

// operand is a name in a condition, with its kind.
type operand struct {
	reference
	status bool // the unit's state
	own    bool // an output of the very unit
	kind   task.Kind
}

// compile reads a condition. own are the outputs that stand without a unit, and
// look finds the kind of everything else.
func compile(text string, own []task.Rule, look func(*operand) error) (*Expression, error) {
	config := conf.CreateNew()
	config.Disabled = nil
	config.MaxNodes = mostNodes
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, plainly(err)
	}
	w := walk{own: own, look: look}
	w.node(tree.Node)
	if w.err != nil {
		return nil, w.err
	}
	env := types.Map{}
	for _, o := range w.reads {
		if o.own {
			env[o.name] = exprTypes[o.kind]
			continue
		}
		inner, ok := env[o.first()].(types.Map)
		if !ok {
			inner = types.Map{}
			env[o.first()] = inner
		}
		inner[o.name] = exprTypes[o.kind]
	}
	program, err := expr.Compile(text, expr.Env(env), expr.AsBool(), expr.DisableAllBuiltins(), expr.MaxNodes(mostNodes))
	if err != nil {
		return nil, plainly(err)
	}
	return &Expression{text, program, w.reads}, nil
}

// plainly is the library's message in one line.
func plainly(err error) error {
	if e, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("character %d: %s", e.Column+1, e.Message)
	}
	return err
}

var exprTypes = map[task.Kind]types.Type{
	task.String: types.String, task.Path: types.String, task.Int: types.Int, task.Float: types.Float64,
	task.Bool: types.Bool, task.Time: types.TypeOf(time.Time{}),
}

func (o *operand) first() string {
	switch o.scope {
	case toParam:
		return paramWord
	case toState:
		return stateWord
	}
	return o.unit
}

// Eval is the condition's answer; own are the outputs of the unit itself.
func (e *Expression) Eval(f Facts, own task.Values) (bool, error) {
	env := make(map[string]any, len(e.reads))
	for _, o := range e.reads {
		if o.own {
			text, _ := own.Get(o.name)
			env[o.name] = exprValue(o.kind, text)
			continue
		}
		inner, ok := env[o.first()].(map[string]any)
		if !ok {
			inner = map[string]any{}
			env[o.first()] = inner
		}
		if o.status {
			inner[o.name] = f.Status(o.unit)
			continue
		}
		text, _ := o.value(f) // what has no value is empty
		inner[o.name] = exprValue(o.kind, text)
	}
	out, err := expr.Run(e.program, env)
	if err != nil {
		return false, fmt.Errorf("%s: %w", quote(e.text), plainly(err))
	}
	answer, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("%s: came to %v, want true or false", quote(e.text), out)
	}
	return answer, nil
}

// Values are the names that the condition reads with what they stand for, to be
// shown beside its answer.
func (e *Expression) Values(f Facts, own task.Values) task.Values {
	var list []task.Value
	for _, o := range e.reads {
		v := task.Value{Name: o.path}
		switch {
		case o.own:
			v.Value, _ = own.Get(o.name)
		case o.status:
			v.Value = f.Status(o.unit)
		default:
			v.Value, _ = o.value(f)
		}
		list = append(list, v)
	}
	values, err := task.NewValues(list)
	if err != nil {
		panic("mission: a condition reads a name twice: " + err.Error())
	}
	return values
}

// exprValue is a value as the library calculates with it.
func exprValue(k task.Kind, text string) any {
	switch k {
	case task.Int:
		i, _ := strconv.ParseInt(text, 10, 64)
		return int(min(max(i, math.MinInt), math.MaxInt))
	case task.Float:
		f, _ := strconv.ParseFloat(text, 64)
		return f
	case task.Bool:
		return text == "true"
	case task.Time:
		t, _ := time.Parse(time.RFC3339Nano, text)
		return t
	}
	return text
}

// walk goes through a condition, refuses what might not end well and gathers
// the names.
type walk struct {
	own   []task.Rule
	look  func(*operand) error
	reads []operand
	err   error
}

func (w *walk) refuse(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *walk) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
	case *ast.UnaryNode:
		w.node(n.Node)
	case *ast.ConditionalNode:
		w.node(n.Cond)
		w.node(n.Exp1)
		w.node(n.Exp2)
	case *ast.BinaryNode:
		w.binary(n)
	case *ast.IdentifierNode:
		w.bare(n.Value)
	case *ast.MemberNode:
		w.member(n)
	case *ast.CallNode, *ast.BuiltinNode:
		w.refuse("%s: a condition has no functions", quote(n.String()))
	default:
		w.refuse("%s: a condition has comparisons, arithmetic, texts and logic only", quote(n.String()))
	}
}

// operators are those that always have an answer.
var operators = []string{
	"and", "or", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "contains", "startsWith", "endsWith",
}

func (w *walk) binary(n *ast.BinaryNode) {
	w.node(n.Left)
	switch {
	case n.Operator == "in":
		list, ok := n.Right.(*ast.ArrayNode)
		if !ok {
			w.refuse("%s: in wants a list such as [1, 2]", quote(n.String()))
			return
		}
		for _, e := range list.Nodes {
			w.node(e)
		}
		return
	case n.Operator == "%":
		if by, ok := n.Right.(*ast.IntegerNode); !ok || by.Value == 0 {
			w.refuse("%s: %% wants a number that is not 0", quote(n.String()))
		}
	case n.Operator == "matches":
		pattern, ok := n.Right.(*ast.StringNode)
		if !ok {
			w.refuse("%s: matches wants a pattern that is written out", quote(n.String()))
		} else if _, err := regexp.Compile(pattern.Value); err != nil {
			w.refuse("%s: %s", quote(pattern.Value), err)
		}
	case !slices.Contains(operators, n.Operator):
		w.refuse("a condition has no %s", n.Operator)
	}
	w.node(n.Right)
}

func (w *walk) bare(name string) {
	if r := rule(w.own, name); r != nil {
		w.read(operand{own: true, kind: r.Kind, reference: reference{path: name, name: name}})
		return
	}
	var names []string
	for i := range w.own {
		names = append(names, w.own[i].Name)
	}
	w.refuse("%s: want params.NAME, UNIT.OUTPUT, UNIT.status or state.KEY%s", name, meant(name, names))
}

func (w *walk) member(n *ast.MemberNode) {
	first, plain := n.Node.(*ast.IdentifierNode)
	name, fixed := n.Property.(*ast.StringNode)
	if !plain || !fixed || n.Optional || n.Method {
		w.refuse("%s: want params.NAME, UNIT.OUTPUT, UNIT.status or state.KEY", quote(n.String()))
		return
	}
	o := operand{reference: reference{path: first.Value + "." + name.Value, name: name.Value}}
	switch first.Value {
	case paramWord:
		o.scope = toParam
	case stateWord:
		o.scope = toState
	default:
		o.unit, o.status = first.Value, name.Value == statusWord
	}
	if rule(w.own, first.Value) != nil {
		w.refuse("%s: %s is an output of this unit as well: give the unit another name", o.path, first.Value)
		return
	}
	if err := w.look(&o); err != nil {
		w.refuse("%s", err)
		return
	}
	w.read(o)
}

func (w *walk) read(o operand) {
	if !slices.ContainsFunc(w.reads, func(r operand) bool { return r.path == o.path }) {
		w.reads = append(w.reads, o)
	}
}
