package engine

// slab is numbered places for values without pointers, in chunks that are never
// copied: a million of them cost the collector nothing. Place 0 is never given
// out, so a number of 0 can mean none; what is read there is zero.
type slab[T any] struct {
	chunks []*[slabChunk]T
	made   uint32   // places ever made, the unused 0 included
	free   []uint32 // to use again
}

const slabChunk = 1024

func newSlab[T any]() slab[T] {
	return slab[T]{made: 1, chunks: []*[slabChunk]T{new([slabChunk]T)}}
}

func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/slabChunk][i%slabChunk] }

// take gives a place that is zero.
func (s *slab[T]) take() (i uint32) {
	if last := len(s.free) - 1; last >= 0 {
		i = s.free[last]
		s.free = s.free[:last]
		return i
	}
	i = s.made
	s.made++
	if int(i/slabChunk) == len(s.chunks) {
		s.chunks = append(s.chunks, new([slabChunk]T))
	}
	return i
}

// drop gives a place back, zeroed.
func (s *slab[T]) drop(i uint32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
}
