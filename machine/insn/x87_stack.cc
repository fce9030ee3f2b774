#include "machine/insn/x87_stack.h"

namespace clew::machine {
namespace {

constexpr uint16_t kTopMask = 7u << 11;
// Bits 6 (always set), 13 to 15 and 7 (always clear) cannot be changed.
constexpr uint16_t kControlBits = 0x1f3f;
constexpr uint16_t kControlAlways = 0x40;

enum Tag : uint8_t { kValid, kZero, kSpecial };

// As FNSTENV stores the tag of a register that is not empty.
Tag TagOf(const Float80& value) {
  const unsigned exponent = value.sign_exponent & 0x7fffu;
  if (exponent == 0) {
    return value.significand == 0 ? kZero : kSpecial;
  }
  const bool integer_bit = (value.significand >> 63) != 0;
  return exponent == 0x7fff || !integer_bit ? kSpecial : kValid;
}

}  // namespace

void X87Stack::SetTag(unsigned physical, unsigned tag) {
  const unsigned shift = 2 * physical;
  x87_.tag = static_cast<uint16_t>((x87_.tag & ~(3u << shift)) | tag << shift);
}

void X87Stack::Set(unsigned i, const Float80& value) {
  const unsigned physical = Physical(i);
  x87_.regs[physical] = value;
  SetTag(physical, TagOf(value));
}

void X87Stack::Rotate(unsigned by) {
  const unsigned top_bits = ((top() + by) & 7u) << 11;
  x87_.status = static_cast<uint16_t>((x87_.status & ~kTopMask) | top_bits);
}

void X87Stack::Push(const Float80& value) {
  const bool overflow = !empty(7);
  Rotate(7);
  if (overflow) {
    Set(0, kX87Indefinite);
    StackOverflow();
  } else {
    Set(0, value);
  }
}

// The top is register 0, and none is empty.
void X87Stack::EnterMmx() {
  x87_.status = static_cast<uint16_t>(x87_.status & ~kTopMask);
  constexpr unsigned kLowBits = 0x5555;
  if ((x87_.tag & (x87_.tag >> 1) & kLowBits) != 0) {
    SetNonEmptyMask(0xff);
  }
}

void X87Stack::LeaveMmx() {
  x87_.status = static_cast<uint16_t>(x87_.status & ~kTopMask);
  x87_.tag = 0xffff;
}

void X87Stack::SetMmx(unsigned number, uint64_t value, bool is_of_qemu) {
  Float80& reg = x87_.regs[number];
  reg.significand = value;
  if (!is_of_qemu) {
    reg.sign_exponent = 0xffff;
  }
  SetTag(number, TagOf(reg));
}

// Bits 7 and 15 are set while an exception is pending that is not masked.
void X87Stack::UpdateSummary() {
  constexpr unsigned kSummaryBits = kX87Summary | kX87Busy;
  const bool pending = (x87_.status & ~x87_.control & kX87Exceptions) != 0;
  x87_.status = static_cast<uint16_t>((x87_.status & ~kSummaryBits) |
                                      (pending ? kSummaryBits : 0u));
}

void X87Stack::Note(uint16_t raised, uint16_t conditions) {
  const unsigned kept = x87_.status & ~unsigned{conditions};
  x87_.status = static_cast<uint16_t>(
      kept | (raised & (unsigned{conditions} | kX87Exceptions)));
  UpdateSummary();
}

void X87Stack::StackUnderflow() {
  x87_.status |= kX87StackFault;
  Note(kX87Invalid, kX87C1);
}

void X87Stack::StackOverflow() {
  x87_.status |= kX87StackFault;
  Note(kX87Invalid | kX87C1, kX87C1);
}

void X87Stack::SetControl(uint16_t control) {
  x87_.control =
      static_cast<uint16_t>((control & kControlBits) | kControlAlways);
  UpdateSummary();
}

void X87Stack::SetStatus(uint16_t status) {
  x87_.status = status;
  UpdateSummary();
}

void X87Stack::SetTags(uint16_t tags) {
  uint8_t mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const bool in_use = ((tags >> (2 * i)) & 3u) != kEmpty;
    mask |= static_cast<uint8_t>(in_use ? 1u << i : 0u);
  }
  SetNonEmptyMask(mask);
}

void X87Stack::SetNonEmptyMask(uint8_t mask) {
  for (unsigned i = 0; i < 8; ++i) {
    const bool in_use = ((mask >> i) & 1) != 0;
    SetTag(i, in_use ? unsigned{TagOf(x87_.regs[i])} : kEmpty);
  }
}

uint8_t X87Stack::NonEmptyMask() const {
  uint8_t mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const bool in_use = ((x87_.tag >> (2 * i)) & 3u) != kEmpty;
    mask |= static_cast<uint8_t>(in_use ? 1u << i : 0u);
  }
  return mask;
}

void X87Stack::Initialise() {
  x87_.control = 0x37f;
  x87_.status = 0;
  x87_.tag = 0xffff;
}

void X87Stack::ClearExceptions() {
  constexpr unsigned kCleared =
      kX87Exceptions | kX87StackFault | kX87Summary | kX87Busy;
  x87_.status = static_cast<uint16_t>(x87_.status & ~kCleared);
}

void X87Stack::MaskExceptions() {
  x87_.control |= kX87Exceptions;
  UpdateSummary();
}

}  // namespace clew::machine
