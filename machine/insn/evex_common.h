#ifndef CLEW_MACHINE_INSN_EVEX_COMMON_H_
#define CLEW_MACHINE_INSN_EVEX_COMMON_H_

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "machine/insn/sse_common.h"
#include "machine/vector/wide_op.h"

// The one shape of EVEX instructions over the value functions of
// machine/vector/wide_op.h:
//
//   sources -> registers, or what of memory the writemask selects
//   result  =  op(sources), on as many lanes as the vector length has
//   op[0]   =  the selected elements of the result; the others are kept, or
//              zero (EVEX.z); what lies above is cleared
//
// As for SSE, values are plain: a shadow is concretised. What only moves or
// combines bits carries it instead (evex_move.cc).
//
// Source: Intel SDM vol. 2, "Intel AVX-512 Encoding", and vol. 1, "Programming
// with Intel AVX-512".

namespace clew::machine {

// How a memory operand is accessed under a writemask.
enum class MaskedMemory : uint8_t {
  kElements,  // those elements alone that are selected
  kWhole,     // in whole, whatever is selected
  kPacked,    // as many elements as are selected, one behind the other
};

// What an EVEX form is, beside its operation. Sizes are in bytes.
struct EvexShape {
  // An element of the result: what a bit of the writemask selects.
  uint8_t element = 4;
  // 1: op(op[1]); 2: op(op[1], op[2]); 3: op(op[0], op[1], op[2]).
  uint8_t sources = 2;
  // An element of the last source; 0: as one of the result.
  uint8_t source_element = 0;
  MaskedMemory memory = MaskedMemory::kElements;
  // Of the last source in memory, where it is not the vector length (a count, a
  // part that is inserted or repeated); 0: an element for each of the result.
  uint8_t memory_bytes = 0;
  // Of the result, where it is not the vector length (a part that is taken
  // out); 0: an element for each of the source.
  uint8_t result_bytes = 0;
  // It may raise floating-point exceptions: what is not selected is computed on
  // 1.0, which raises none.
  bool is_float = false;
  // On element 0 alone; those above it, in lane 0, are what op makes of them.
  bool is_scalar = false;
  // What is not selected comes from the first source, not from op[0].
  bool merges_first = false;

  constexpr unsigned from() const {
    return source_element != 0 ? source_element : element;
  }
};

inline unsigned LanesOf(const Insn& insn) {
  return insn.vector_bytes / kLaneBytes;
}

// The low `count` bits.
constexpr uint64_t LowBits(unsigned count) {
  return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
}

// How many elements the result has.
inline unsigned ElementCount(const Insn& insn, const EvexShape& shape) {
  if (shape.is_scalar) {
    return 1;
  }
  return shape.result_bytes != 0
             ? shape.result_bytes / shape.element
             : insn.vector_bytes /
                   std::max<unsigned>(shape.element, shape.from());
}

// Which of `count` elements the writemask selects.
template <class D>
uint64_t SelectedOf(Cpu<D>& cpu, const Insn& insn, unsigned count) {
  const uint64_t all = LowBits(count);
  return insn.opmask != 0 ? cpu.regs().opmask[insn.opmask] & all : all;
}

// Calls f(first, count) for each run of bits that are set, lowest first, until
// it returns false; returns whether it never did.
template <class F>
bool EachRun(uint64_t bits, F f) {
  while (bits != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(bits));
    const auto count = static_cast<unsigned>(std::countr_one(bits >> first));
    if (!f(first, count)) {
      return false;
    }
    bits &= ~(LowBits(count) << first);
  }
  return true;
}

// Loads the elements of `size` bytes whose bits are set from `addr` on to their
// places in `to`, and accesses no other. False: it faults, at the lowest of
// them that does.
template <class D>
bool LoadElements(Cpu<D>& cpu, uint64_t addr, uint64_t elements, unsigned size,
                  std::span<std::byte> to) {
  return EachRun(elements,
                 [&](unsigned first, unsigned count) {
                   return cpu.CheckLoad(addr + first * size, count * size);
                 }) &&
         EachRun(elements, [&](unsigned first, unsigned count) {
           return cpu.LoadBytes(addr + first * size,
                                to.subspan(first * size, count * size));
         });
}

// Stores the elements whose bits are set from their places in `from`, and
// accesses no other. `by_mask`: of a vector under a writemask.
template <class D>
void StoreElements(Cpu<D>& cpu, uint64_t addr, uint64_t elements, unsigned size,
                   std::span<const std::byte> from, bool by_mask) {
  if (elements == 0) {
    return;
  }
  const auto first = static_cast<unsigned>(std::countr_zero(elements));
  const auto end = static_cast<unsigned>(std::bit_width(elements));
  if ((by_mask &&
       FaultsAtLastByte(cpu, addr + first * size, addr + end * size - 1)) ||
      !EachRun(elements, [&](unsigned begin, unsigned count) {
        return cpu.CheckStore(addr + begin * size, count * size);
      })) {
    return;
  }
  EachRun(elements, [&](unsigned begin, unsigned count) {
    return cpu.StoreBytes(addr + begin * size,
                          from.subspan(begin * size, count * size));
  });
}

// A vector register's lanes, as many as the vector length has.
template <class D>
Wide ReadWide(Cpu<D>& cpu, const Operand& operand, unsigned lanes) {
  Wide value = {};
  for (unsigned i = 0; i < 2 * lanes; ++i) {
    value[i / 2].q[i % 2] = cpu.d().Concretise(cpu.GetQuad(operand.reg, i));
  }
  return value;
}

// All quadwords of a vector register; what lies above a result is zero.
template <class D>
void WriteWide(Cpu<D>& cpu, const Insn& insn, const Operand& operand,
               const Wide& value) {
  for (unsigned i = 0; i < kVecQuads; ++i) {
    cpu.SetQuad(operand.reg, i, cpu.d().Const(value[i / 2].q[i % 2]));
  }
  cpu.NoteVectorUse(operand.reg, insn.vector_bytes);
}

inline std::span<std::byte> BytesOf(Wide& value) {
  return std::as_writable_bytes(std::span(value));
}
inline std::span<const std::byte> BytesOf(const Wide& value) {
  return std::as_bytes(std::span(value));
}

// Copies the elements of `size` bytes whose bits are set.
inline void CopyElements(const Wide& from, uint64_t elements, unsigned size,
                         Wide& to) {
  EachRun(elements, [&](unsigned first, unsigned count) {
    std::ranges::copy(BytesOf(from).subspan(first * size, count * size),
                      BytesOf(to).subspan(first * size).begin());
    return true;
  });
}

// Repeats the first `size` bytes of `value` in all of it.
inline void RepeatFirst(Wide& value, unsigned size) {
  for (unsigned at = size; at < sizeof(value); at += size) {
    std::ranges::copy(BytesOf(value).first(size),
                      BytesOf(value).subspan(at).begin());
  }
}

// How many lanes are computed.
inline unsigned LanesOf(const Insn& insn, const EvexShape& shape) {
  return shape.is_scalar ? 1 : LanesOf(insn);
}

// The last source, of memory no more than the shape says. Faults.
template <class D>
Wide ReadLastSource(Cpu<D>& cpu, const Insn& insn, const Operand& operand,
                    const EvexShape& shape, uint64_t selected) {
  if (operand.is_vec()) {
    return ReadWide(cpu, operand, LanesOf(insn, shape));
  }
  Wide value = {};
  const unsigned size = shape.from();
  const unsigned count =
      insn.broadcast            ? 1
      : shape.memory_bytes != 0 ? shape.memory_bytes / size
      : shape.is_scalar
          ? 1
          : insn.vector_bytes / std::max<unsigned>(shape.element, size);
  uint64_t elements = LowBits(count);
  if (shape.memory == MaskedMemory::kPacked) {
    elements = LowBits(static_cast<unsigned>(std::popcount(selected)));
  } else if (shape.memory == MaskedMemory::kElements) {
    // Element i of the result is of element i % count.
    elements = 0;
    for (unsigned i = 0; i < 64; i += count) {
      elements |= selected >> i & LowBits(count);
    }
  }
  if (LoadElements(cpu, cpu.Address(insn), elements, size, BytesOf(value)) &&
      insn.broadcast) {
    RepeatFirst(value, size);
  }
  return value;
}

// 1.0 in every element of `size` bytes.
inline Wide Ones(unsigned size) {
  constexpr uint64_t kDouble = 0x3ff0000000000000;
  constexpr uint64_t kSingles = 0x3f8000003f800000;
  constexpr uint64_t kHalves = 0x3c003c003c003c00;
  Wide ones;
  const uint64_t quad = size == 8 ? kDouble : size == 4 ? kSingles : kHalves;
  ones.fill({{quad, quad}});
  return ones;
}

template <class D>
WideState WideStateFor(Cpu<D>& cpu, const Insn& insn, const EvexShape& shape,
                       uint64_t selected) {
  WideState state;
  const VecState narrow = StateFor(cpu, insn);
  state.mxcsr = narrow.mxcsr;
  state.imm = narrow.imm;
  state.is_of_qemu = narrow.is_of_qemu;
  state.lanes = LanesOf(insn, shape);
  state.selected = selected;
  return state;
}

// The operands of an EVEX instruction, read.
struct EvexOperands {
  unsigned count = 0;  // of elements of the result
  uint64_t selected = 0;
  Wide first = {};
  Wide last = {};
  WideState state;
};

// Reads them. They are of no use if it faulted.
template <class D>
EvexOperands ReadOperands(Cpu<D>& cpu, const Insn& insn,
                          const EvexShape& shape) {
  EvexOperands read;
  read.count = ElementCount(insn, shape);
  read.selected = SelectedOf(cpu, insn, read.count);
  const unsigned lanes = LanesOf(insn, shape);
  const unsigned last = shape.sources == 1 ? 1 : 2;
  read.last = ReadLastSource(cpu, insn, insn.op[last], shape, read.selected);
  if (cpu.faulted()) {
    return read;
  }
  read.state = WideStateFor(cpu, insn, shape, read.selected);
  if (shape.sources == 2) {
    read.first = ReadWide(cpu, insn.op[1], lanes);
  } else if (shape.sources == 3) {
    read.first = ReadWide(cpu, insn.op[0], lanes);
    read.state.third = ReadWide(cpu, insn.op[1], lanes);
  }
  if (shape.is_float && read.selected != LowBits(read.count)) {
    const uint64_t others = ~read.selected & LowBits(read.count);
    CopyElements(Ones(shape.from()), others, shape.from(), read.last);
    CopyElements(Ones(shape.element), others, shape.element, read.first);
    CopyElements(Ones(shape.element), others, shape.element, read.state.third);
  }
  return read;
}

// Writes the selected elements of a result to op[0].
template <class D>
void WriteSelected(Cpu<D>& cpu, const Insn& insn, const EvexShape& shape,
                   const EvexOperands& read, Wide result) {
  const uint64_t all = LowBits(read.count);
  const uint64_t selected = read.state.selected & all;
  if (insn.op[0].is_mem()) {
    StoreElements(cpu, cpu.Address(insn), selected, shape.element,
                  BytesOf(result), insn.opmask != 0 && !shape.is_scalar);
    return;
  }
  if (selected != all) {
    Wide others = {};
    if (!insn.zeroing) {
      others = shape.merges_first ? read.first
                                  : ReadWide(cpu, insn.op[0], kVecLanes);
    }
    CopyElements(others, all & ~selected, shape.element, result);
  }
  const unsigned bytes =
      shape.is_scalar ? kLaneBytes : read.count * shape.element;
  std::ranges::fill(BytesOf(result).subspan(bytes), std::byte{0});
  WriteWide(cpu, insn, insn.op[0], result);
}

// The operation of a move.
inline void Copy(Wide& dst, const Wide& src, WideState&) { dst = src; }

// Not a template over what differs between forms: the handlers of hundreds of
// them share it.
template <class D>
void RunEvex(Cpu<D>& cpu, const Insn& insn, const EvexShape& shape, WideOp op) {
  EvexOperands read = ReadOperands(cpu, insn, shape);
  if (cpu.faulted()) {
    return;
  }
  Wide result = read.first;
  op(result, read.last, read.state);
  WriteSelected(cpu, insn, shape, read, result);
  // The store of VCVTPS2PH is the last that it does: on Intel's CPUs
  // (Sapphire Rapids) exceptions are noted though it faults.
  if (!cpu.faulted() || cpu.regs().is_of_intel()) {
    NoteExceptions(cpu, insn, read.state.mxcsr);
  }
}

template <class D, EvexShape kShape, WideOp kOp>
void EvexInsn(Cpu<D>& cpu, const Insn& insn) {
  RunEvex(cpu, insn, kShape, kOp);
}

// The selector of an operation on vector registers and memory.
template <class D, EvexShape kShape, WideOp kOp>
constexpr Selector<D> kEvex =
    [](const Insn&) -> Handler<D> { return &EvexInsn<D, kShape, kOp>; };

// Of narrower elements than the source has, as many bytes: so there are more of
// them, and the shape has to say how many.
template <class D, class To, class From, WideOp kOp>
Handler<D> SelectNarrow(const Insn& insn) {
  constexpr auto kShape = [](uint8_t bytes) {
    return EvexShape{.element = sizeof(To),
                     .source_element = sizeof(From),
                     .memory = MaskedMemory::kWhole,
                     .result_bytes = bytes};
  };
  switch (LanesOf(insn)) {
    case 1:
      return &EvexInsn<D, kShape(kLaneBytes), kOp>;
    case 2:
      return &EvexInsn<D, kShape(2 * kLaneBytes), kOp>;
    default:
      return &EvexInsn<D, kShape(4 * kLaneBytes), kOp>;
  }
}

// op[0], an opmask register, = kOp(op[1], op[2]), of what is selected; with one
// source, kOp(op[1], op[1]). shape.element is that of both sources.
template <class D>
void RunToOpmask(Cpu<D>& cpu, const Insn& insn, const EvexShape& shape,
                 ToOpmaskOp op) {
  EvexOperands read = ReadOperands(cpu, insn, shape);
  if (cpu.faulted()) {
    return;
  }
  const uint64_t bits =
      op(shape.sources == 1 ? read.last : read.first, read.last, read.state);
  cpu.SetOpmask(insn.op[0].reg, bits & read.selected);
  NoteExceptions(cpu, insn, read.state.mxcsr);
}

template <class D, EvexShape kShape, ToOpmaskOp kOp>
void ToOpmaskInsn(Cpu<D>& cpu, const Insn& insn) {
  RunToOpmask(cpu, insn, kShape, kOp);
}

template <class D, EvexShape kShape, ToOpmaskOp kOp>
constexpr Selector<D> kEvexToOpmask =
    [](const Insn&) -> Handler<D> { return &ToOpmaskInsn<D, kShape, kOp>; };

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_EVEX_COMMON_H_
