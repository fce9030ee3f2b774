#ifndef CLEW_MACHINE_INSN_X87_STACK_H_
#define CLEW_MACHINE_INSN_X87_STACK_H_

#include <cstdint>

#include "machine/registers.h"
#include "machine/vector/x87_op.h"

namespace clew::machine {

// What a masked stack fault, or any masked invalid operation, gives.
inline constexpr Float80 kX87Indefinite = {0xc000000000000000, 0xffff};

// The x87 register stack: st(i) relative to the top, tags, status word, and
// what the CPU does on a stack fault with all exceptions masked (Intel SDM
// vol. 1, "Stack Overflow or Underflow Exception (#IS)"). Borrows `x87`, which
// is in use from then on.
class X87Stack {
 public:
  explicit X87Stack(X87& x87) : x87_(x87) { x87_.in_use = true; }

  uint16_t control() const { return x87_.control; }
  unsigned top() const { return (x87_.status >> 11) & 7u; }
  bool empty(unsigned i) const {
    return ((x87_.tag >> (2 * Physical(i))) & 3u) == kEmpty;
  }
  const Float80& st(unsigned i) const { return x87_.regs[Physical(i)]; }
  // st(i) for arithmetic on a register that may be empty.
  bool AnyEmpty(unsigned i, unsigned j) const { return empty(i) || empty(j); }

  // Writes st(i) and its tag.
  void Set(unsigned i, const Float80& value);
  void Free(unsigned i) { SetTag(Physical(i), kEmpty); }
  // Moves the top by `by` (modulo 8) and nothing else.
  void Rotate(unsigned by);
  // Overflow if st(7) is in use: the indefinite value is pushed instead.
  void Push(const Float80& value);
  void Pop() {
    Free(0);
    Rotate(1);
  }

  // Adds what an operation raised; of the condition codes, those in
  // `conditions` are replaced.
  void Note(uint16_t raised, uint16_t conditions);
  void StackUnderflow();  // invalid, stack fault, C1 = 0
  void StackOverflow();   // the same with C1 = 1

  // What an MMX instruction does to the stack, and one that writes MMX register
  // `number`: it is the significand of that physical register (Intel SDM vol.
  // 3, "MMX State"). A CPU sets the exponent to all ones, QEMU 7.2 leaves it as
  // it is.
  void EnterMmx();
  void SetMmx(unsigned number, uint64_t value, bool is_of_qemu);
  void LeaveMmx();  // EMMS

  // FLDCW, FLDENV, FRSTOR, FXRSTOR.
  void SetControl(uint16_t control);
  void SetStatus(uint16_t status);  // top included
  // Tags as FNSTENV stores them. Only whether a register is empty counts.
  void SetTags(uint16_t tags);
  // Bit i: physical register i is not empty.
  void SetNonEmptyMask(uint8_t mask);
  uint8_t NonEmptyMask() const;
  void Initialise();       // FNINIT: registers keep their contents
  void ClearExceptions();  // FNCLEX
  void MaskExceptions();   // FNSTENV, after storing

 private:
  static constexpr unsigned kEmpty = 3;

  unsigned Physical(unsigned i) const { return (top() + i) & 7u; }
  void SetTag(unsigned physical, unsigned tag);
  void UpdateSummary();

  X87& x87_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_X87_STACK_H_
