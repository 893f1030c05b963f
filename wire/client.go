package wire

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// ClientOptions say who speaks to which controller.
type ClientOptions struct {
	Token  string
	Folder string // the data folder that is meant; empty: any
	Actor  string // who asks, for the records
	Build  string
	Quiet  bool                                                     // asks again and again: what it reads is not for the log of every message
	Dial   func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// Client is an operator's connection. Its calls may come from any goroutine
// and are answered one after the other. A call that its context cuts short
// closes the Client, since nobody could tell the answers apart any more.
type Client struct {
	conn  *Conn
	turn  chan struct{} // holds one value while nobody is in a call
	hello Ack
	msg   Message // of the call that has the turn
}

// keepAlive finds a dead peer within 40 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 10 * time.Second, Count: 3}

// DialTCP connects with the protocol's keepalive; executors use it too.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
}

// SetKeepAlive gives an accepted connection the protocol's keepalive.
func SetKeepAlive(c net.Conn) error {
	if tcp, ok := c.(*net.TCPConn); ok {
		return tcp.SetKeepAliveConfig(keepAlive)
	}
	return nil
}

// Dial connects to the controller at addr and says hello. A refusal is an *Error.
func Dial(ctx context.Context, addr string, o ClientOptions) (*Client, error) {
	dial := o.Dial
	if dial == nil {
		dial = DialTCP
	}
	nc, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: NewConn(nc, MaxFrame), turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	hello := AppendHello(nil, &Hello{Token: o.Token, Folder: o.Folder, Actor: o.Actor, Build: o.Build, Quiet: o.Quiet})
	err = c.ask(ctx, hello, func(m *Message) error {
		ack, err := ParseAck(m)
		c.hello = *ack
		return err
	})
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("hello to %s: %w", addr, err)
	}
	return c, nil
}

// Hello is what the controller said of itself: its folder, build, state version.
func (c *Client) Hello() Ack { return c.hello }

// Close ends the connection; calls that wait return ErrClosed.
func (c *Client) Close() error {
	c.conn.Break(ErrClosed)
	return nil
}

// ask sends one command and gives every frame of its answer to read.
func (c *Client) ask(ctx context.Context, frames []byte, read func(*Message) error) error {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	stop := context.AfterFunc(ctx, func() { c.conn.Break(context.Cause(ctx)) })
	defer stop()
	c.conn.Append(frames)
	if err := c.conn.Wait(); err != nil {
		return c.why(err)
	}
	return c.answer(read)
}

// why prefers what the controller said before it hung up to the broken write.
func (c *Client) why(err error) error {
	if c.next() == nil && c.msg.Type == TypeError {
		if said, bad := ParseError(&c.msg); bad == nil {
			return said
		}
	}
	return err
}

// next reads a frame into c.msg.
func (c *Client) next() error {
	for {
		if text, ok := c.conn.Next(); ok {
			return c.msg.Parse(text)
		}
		if err := c.conn.Fill(); err != nil {
			return err
		}
	}
}

// answer reads frames until one that is not a part. A fault of one does not
// leave the rest unread.
func (c *Client) answer(read func(*Message) error) error {
	var fault error
	for {
		if err := c.next(); err != nil {
			c.conn.Break(err)
			return err
		}
		err := readAnswer(&c.msg, read)
		if fault == nil {
			fault = err
		}
		if c.msg.Text("part") != "true" {
			return fault
		}
	}
}

func readAnswer(m *Message, read func(*Message) error) error {
	switch m.Type {
	case TypeError:
		said, err := ParseError(m)
		if err != nil {
			return err
		}
		return said
	case TypeAck, TypeRows, TypeState:
		return read(m)
	}
	return fmt.Errorf("answer of unknown type %q", cut(string(m.Type), 60))
}

func done(m *Message) error {
	_, err := ParseAck(m)
	return err
}

// askRows asks and appends every row of the answer to a list.
func askRows[T any, P interface {
	*T
	view.Row
}](ctx context.Context, c *Client, request []byte, head func(*fields)) ([]T, error) {
	var list []T
	err := c.ask(ctx, request, func(m *Message) error {
		f := fields{m: m}
		if head != nil && list == nil {
			head(&f)
		}
		err := eachRow(m, func(row *Message) error {
			list = append(list, *new(T))
			return ReadRow(row, P(&list[len(list)-1]))
		})
		if f.err != nil {
			return f.err
		}
		return err
	})
	return list, err
}

// Status asks for the controller on one page.
func (c *Client) Status(ctx context.Context) (*view.Status, error) {
	list, err := askRows[view.Status](ctx, c, AppendControl(nil, OpStatus), nil)
	return only(list, err)
}

func only[T any](list []T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("answer of %d rows where one was due", len(list))
	}
	return &list[0], nil
}

// Executors asks for all executors.
func (c *Client) Executors(ctx context.Context) ([]view.Executor, error) {
	return askRows[view.Executor](ctx, c, AppendControl(nil, OpExecutors), nil)
}

// Queues asks for all queues.
func (c *Client) Queues(ctx context.Context) ([]view.Queue, error) {
	return askRows[view.Queue](ctx, c, AppendControl(nil, OpQueues), nil)
}

// Tasks asks for a page of tasks.
func (c *Client) Tasks(ctx context.Context, q view.Query) (*view.Page, error) {
	p := new(view.Page)
	var err error
	p.Tasks, err = askRows[view.Task](ctx, c, AppendTasks(nil, &q), func(f *fields) {
		p.Cursor, p.Examined, p.Total = f.text("cursor"), int(f.count("examined")), int(f.count("total"))
	})
	return p, err
}

// Task asks for all that is known of one task; id may be a unique prefix.
func (c *Client) Task(ctx context.Context, id string) (*view.Detail, error) {
	return c.detail(ctx, AppendName(nil, OpTask, id))
}

// Edit changes a task's inputs, and gives one that has ended a new life with
// them. It returns the task as it is now.
func (c *Client) Edit(ctx context.Context, e Edit) (*view.Detail, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	return c.detail(ctx, AppendEdit(nil, &e))
}

func (c *Client) detail(ctx context.Context, request []byte) (*view.Detail, error) {
	var d *view.Detail
	err := c.ask(ctx, request, func(m *Message) error {
		return eachRow(m, func(row *Message) error {
			if d == nil {
				d = new(view.Detail)
				return ReadRow(row, d)
			}
			d.Attempts = append(d.Attempts, view.Attempt{})
			return ReadRow(row, &d.Attempts[len(d.Attempts)-1])
		})
	})
	if err == nil && d == nil {
		err = fmt.Errorf("answer without a task")
	}
	return d, err
}

// Keys asks for a page of the global state.
func (c *Client) Keys(ctx context.Context, q view.KeyQuery) (*view.KeyPage, error) {
	return c.KeysAt(ctx, 0, q)
}

// KeysAt is Keys of the state as record seq left it; 0: as it is now.
func (c *Client) KeysAt(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
	p := new(view.KeyPage)
	var err error
	p.Keys, err = askRows[view.Key](ctx, c, AppendKeys(nil, &q, seq), func(f *fields) {
		p.Version, p.Cursor = int64(f.count("version")), f.text("cursor")
	})
	return p, err
}

// Late asks for the newest lines of the late ledger.
func (c *Client) Late(ctx context.Context, limit int) ([]view.Late, error) {
	return askRows[view.Late](ctx, c, AppendLate(nil, limit), nil)
}

// Timeline asks for a page of the timeline.
func (c *Client) Timeline(ctx context.Context, q view.EventQuery) (*view.EventPage, error) {
	p := new(view.EventPage)
	var err error
	p.Events, err = askRows[view.Event](ctx, c, AppendTimeline(nil, &q), func(f *fields) {
		p.Next, p.More = int64(f.count("next")), f.flag("more")
	})
	return p, err
}

// Submit asks for tasks, all or none. The answer is in order of specs; faults
// are in the *Error.
func (c *Client) Submit(ctx context.Context, specs []task.Spec) ([]view.Submitted, error) {
	frames, err := AppendSubmit(nil, specs, MaxFrame)
	if err != nil {
		return nil, err
	}
	var list []view.Submitted
	err = c.ask(ctx, frames, func(m *Message) (err error) {
		list, err = ParseSubmitted(list, m)
		return err
	})
	return list, err
}

// Check asks whether the controller would take tasks now, all of them; faults
// are in the *Error. Nothing is queued.
func (c *Client) Check(ctx context.Context, specs []task.Spec) error {
	frames, err := AppendCheck(nil, specs, MaxFrame)
	if err != nil {
		return err
	}
	return c.ask(ctx, frames, done)
}

// Requeue gives ended tasks a new life.
func (c *Client) Requeue(ctx context.Context, s view.Selection) (*view.Changed, error) {
	return c.act(ctx, OpRequeue, &s, "")
}

// Cancel ends tasks that have not ended.
func (c *Client) Cancel(ctx context.Context, s view.Selection, reason string) (*view.Changed, error) {
	return c.act(ctx, OpCancel, &s, reason)
}

// Drop takes dead letters out of memory.
func (c *Client) Drop(ctx context.Context, s view.Selection, reason string) (*view.Changed, error) {
	return c.act(ctx, OpDrop, &s, reason)
}

// Explain asks why a task stands where it does; id may be a unique prefix.
func (c *Client) Explain(ctx context.Context, id string) (*view.Explanation, error) {
	var x *view.Explanation
	err := c.ask(ctx, AppendName(nil, OpExplain, id), func(m *Message) (err error) {
		x, err = ParseExplanation(m)
		return err
	})
	return x, err
}

func (c *Client) act(ctx context.Context, op Op, s *view.Selection, reason string) (*view.Changed, error) {
	if len(s.IDs) > maxIDs {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%d tasks at once, want at most %d", len(s.IDs), maxIDs)}
	}
	if i := slices.IndexFunc(s.IDs, func(id string) bool { return task.CheckID(id) != nil }); i >= 0 {
		return nil, &Error{Code: CodeInvalid, Message: task.CheckID(s.IDs[i]).Error()} // a comma would make it two
	}
	var changed *view.Changed
	err := c.ask(ctx, AppendSelect(nil, op, s, reason), func(m *Message) (err error) {
		changed, err = ParseChanged(m)
		return err
	})
	return changed, err
}

// Pause stops dispatching, or lets it go on: of one type, or of all if typ is
// empty.
func (c *Client) Pause(ctx context.Context, typ string, on bool) error {
	return c.ask(ctx, AppendSwitch(nil, OpPause, typ, on), done)
}

// Drain lets an executor finish what it runs and takes it out.
func (c *Client) Drain(ctx context.Context, exec string) error {
	return c.ask(ctx, AppendName(nil, OpDrain, exec), done)
}

// Debug switches the log of every message.
func (c *Client) Debug(ctx context.Context, on bool) error {
	return c.ask(ctx, AppendSwitch(nil, OpDebug, "", on), done)
}

// Repair sets or deletes a state key by hand and returns what it is now.
func (c *Client) Repair(ctx context.Context, r Repair) (*view.Key, error) {
	list, err := askRows[view.Key](ctx, c, AppendRepair(nil, &r), nil)
	return only(list, err)
}

// Logs asks for a piece of what an attempt printed.
func (c *Client) Logs(ctx context.Context, q LogQuery) (*LogChunk, error) {
	var chunk *LogChunk
	err := c.ask(ctx, AppendLogs(nil, &q), func(m *Message) (err error) {
		chunk, err = ParseLogChunk(m)
		return err
	})
	return chunk, err
}

// Pipeline is a Client with many submits on the way. It has the Client to
// itself until it is closed; one goroutine may send while another receives.
type Pipeline struct{ c *Client }

// Pipeline waits for the Client to be free.
func (c *Client) Pipeline(ctx context.Context) (*Pipeline, error) {
	select {
	case <-c.turn:
		return &Pipeline{c}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send sends a submit and does not wait for its answer.
func (p *Pipeline) Send(specs []task.Spec) error {
	frames, err := AppendSubmit(nil, specs, MaxFrame)
	if err != nil {
		return err
	}
	p.c.conn.Append(frames)
	return p.c.conn.Wait()
}

// Receive waits for the answer of the oldest submit without one.
func (p *Pipeline) Receive() (list []view.Submitted, err error) {
	err = p.c.answer(func(m *Message) (err error) {
		list, err = ParseSubmitted(list, m)
		return err
	})
	return list, err
}

// Close gives the Client back. Every Send must have had its Receive.
func (p *Pipeline) Close() { p.c.turn <- struct{}{} }

// PageHead is the head of a page of tasks, for AppendRows.
func PageHead(p *view.Page) []Field {
	return head("cursor", p.Cursor, "examined", strconv.Itoa(p.Examined), "total", strconv.Itoa(p.Total))
}

// KeysHead is the head of a page of the global state.
func KeysHead(p *view.KeyPage) []Field {
	return head("version", strconv.FormatInt(p.Version, 10), "cursor", p.Cursor)
}

// EventsHead is the head of a page of the timeline.
func EventsHead(p *view.EventPage) []Field {
	return head("next", strconv.FormatInt(p.Next, 10), "more", strconv.FormatBool(p.More))
}

func head(pairs ...string) []Field {
	var list []Field
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, Field{pairs[i], pairs[i+1]})
		}
	}
	return list
}
