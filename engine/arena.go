package engine

import "math/bits"

// arena keeps texts of tasks outside the garbage collector's sight: cells of a
// few sizes in chunks that hold no pointers and are never copied. A freed cell
// is used again by the next text of its size.
type arena struct {
	sizes [cellSizes]cells
	used  int // bytes of all texts held
}

// cells are all cells of one size.
type cells struct {
	chunks [][]byte
	count  uint32   // cells ever made
	free   []uint32 // to use again
}

// text names one text of an arena; zero is the empty one. The low bits are the
// cell's size class, the others its number plus one.
type text uint32

const (
	sizeBits   = 6
	cellSizes  = 1 << sizeBits
	smallest   = 32
	firstBytes = 16 << 10 // a size's first chunk: most sizes never need more
	chunkBytes = 1 << 20  // the others
	lengthSize = 4        // each cell begins with its text's length
)

// classOf is the size class that holds n bytes. Classes grow by a quarter of a
// power of two, so at most a fifth of a cell is wasted.
func classOf(n int) int {
	if n <= smallest {
		return 0
	}
	shift := bits.Len(uint(n-1)) - 3 // the top three bits choose the class
	return (shift-3)*4 + (n-1)>>shift - 3
}

// classBytes is the inverse of classOf: the bytes of a cell.
func classBytes(class int) int {
	if class == 0 {
		return smallest
	}
	c := class - 1
	return (5 + c%4) << (c/4 + 3)
}

// put stores b and names it.
func (a *arena) put(b []byte) text {
	if len(b) == 0 {
		return 0
	}
	class := classOf(len(b) + lengthSize)
	c := &a.sizes[class]
	var n uint32
	if last := len(c.free) - 1; last >= 0 {
		n = c.free[last]
		c.free = c.free[:last]
	} else {
		n = c.count
		c.count++
	}
	cell := c.cell(class, n)
	cell[0], cell[1], cell[2], cell[3] = byte(len(b)), byte(len(b)>>8), byte(len(b)>>16), byte(len(b)>>24)
	copy(cell[lengthSize:], b)
	a.used += len(b)
	return text((n+1)<<sizeBits | uint32(class))
}

// get is the stored text; it is valid until the text is freed.
func (a *arena) get(t text) []byte {
	if t == 0 {
		return nil
	}
	class := int(t) & (cellSizes - 1)
	cell := a.sizes[class].cell(class, uint32(t)>>sizeBits-1)
	n := int(cell[0]) | int(cell[1])<<8 | int(cell[2])<<16 | int(cell[3])<<24
	return cell[lengthSize : lengthSize+n]
}

// drop frees the text.
func (a *arena) drop(t text) {
	if t == 0 {
		return
	}
	a.used -= len(a.get(t))
	c := &a.sizes[int(t)&(cellSizes-1)]
	c.free = append(c.free, uint32(t)>>sizeBits-1)
}

// cell is the n-th cell's bytes; its chunk is made when it is first needed.
func (c *cells) cell(class int, n uint32) []byte {
	size := classBytes(class)
	chunk, at, room := 0, int(n), max(1, firstBytes/size)
	if first := room; at >= first {
		room = max(1, chunkBytes/size)
		chunk, at = 1+(at-first)/room, (at-first)%room
	}
	if chunk == len(c.chunks) {
		c.chunks = append(c.chunks, make([]byte, room*size))
	}
	at *= size
	return c.chunks[chunk][at : at+size : at+size]
}
