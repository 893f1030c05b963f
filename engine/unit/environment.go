package unit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"apollo11/engine/task"
)

// ownVariables are those that every attempt has.
var ownVariables = []string{
	"APOLLO_TASK", "APOLLO_ATTEMPT", "APOLLO_RUN", "APOLLO_UNIT_DIR",
	"APOLLO_INPUT", "APOLLO_OUTPUT", "APOLLO_STATE", "APOLLO_PROGRESS",
	"APOLLO_SAMPLE", "APOLLO_RUN_DIR",
}

// OwnVariables are the names of the variables that every attempt has: a program
// that a unit runs finds them, and none of them is a setting.
func OwnVariables() []string { return slices.Clone(ownVariables) }

// environment is all that the unit's processes see of ours, secrets aside.
func (a *attempt) environment() []string {
	var env []string
	for _, name := range a.Manifest.Env {
		if value, there := inherited(a.Environ, name); there {
			env = append(env, name+"="+value)
		}
	}
	if a.Manifest.Python != nil && a.Manifest.Python.Venv != "" {
		env = append(env, "VIRTUAL_ENV="+a.Manifest.Python.Venv)
	}
	as, sample := a.Assignment, ""
	if as.Sample > 0 {
		sample = strconv.Itoa(as.Sample)
	}
	for i, value := range []string{
		as.Task, strconv.Itoa(as.Attempt), as.Run, a.Manifest.Dir,
		a.desk.file(inputName), a.desk.file(outputName),
		a.desk.file(stateName), a.desk.file(progressName),
		sample, a.runDir,
	} {
		env = append(env, ownVariables[i]+"="+value)
	}
	for prefix, values := range variablesOf(as) {
		for _, v := range values {
			env = append(env, variable(prefix, v.Name)+"="+v.Value)
		}
	}
	return env
}

// variablesOf are the values that become variables, by the prefix of their names.
func variablesOf(as task.Assignment) map[string]task.Values {
	all := map[string]task.Values{"IN_": as.Inputs, "CTX_": as.Context}
	if as.Undo {
		all["OUT_"] = as.Outputs
	}
	return all
}

// inherited is a variable of the executor's; of a name given twice the last counts.
func inherited(environ []string, name string) (value string, there bool) {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value, there = v, true
		}
	}
	return value, there
}

// valueOf is a variable's value in an environment, empty if it has none.
func valueOf(env []string, name string) string {
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// longestVariable is what Linux takes for one NAME=value, its end included.
const longestVariable = 128 << 10

// checkVariables refuses values that no environment can carry, rather than have
// a unit work on others than it was given.
func checkVariables(as task.Assignment) error {
	for prefix, values := range variablesOf(as) {
		for _, v := range values {
			if strings.IndexByte(v.Value, 0) >= 0 {
				return fmt.Errorf("%s holds a NUL byte, which no environment variable can", v.Name)
			}
			if n := len(prefix) + len(v.Name) + len(v.Value) + 2; n > longestVariable {
				return fmt.Errorf("%s is %d bytes too long for an environment variable: hand on the name of a file", v.Name, n-longestVariable)
			}
		}
	}
	return nil
}

// inputFile is $APOLLO_INPUT. Inputs have the JSON type of their contract;
// context has no contract here and is text.
func (a *attempt) inputFile() []byte {
	inputs := make(map[string]any, len(a.Assignment.Inputs))
	for _, v := range a.Assignment.Inputs {
		inputs[v.Name] = a.Manifest.jsonValue(v)
	}
	context := make(map[string]string, len(a.Assignment.Context))
	for _, v := range a.Assignment.Context {
		context[v.Name] = v.Value
	}
	as := a.Assignment
	var outputs map[string]string
	if as.Undo {
		outputs = make(map[string]string, len(as.Outputs))
		for _, v := range as.Outputs {
			outputs[v.Name] = v.Value
		}
	}
	text, err := json.Marshal(struct {
		Task    string            `json:"task"`
		Type    string            `json:"type"`
		Attempt int               `json:"attempt"`
		Run     string            `json:"run"`
		Sample  int               `json:"sample,omitempty"`
		Inputs  map[string]any    `json:"inputs"`
		Context map[string]string `json:"context"`
		Outputs map[string]string `json:"outputs,omitempty"` // to undo
	}{as.Task, as.Type, as.Attempt, as.Run, as.Sample, inputs, context, outputs})
	if err != nil {
		panic("unit: inputs that passed their contract have no JSON: " + err.Error())
	}
	return text
}

func (m *Manifest) jsonValue(v task.Value) any {
	for i := range m.Unit.In {
		if m.Unit.In[i].Name != v.Name {
			continue
		}
		switch m.Unit.In[i].Kind {
		case task.Int:
			n, _ := strconv.ParseInt(v.Value, 10, 64)
			return n
		case task.Float:
			f, _ := strconv.ParseFloat(v.Value, 64)
			return f
		case task.Bool:
			return v.Value == "true"
		}
	}
	return v.Value
}
