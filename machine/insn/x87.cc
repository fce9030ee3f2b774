// The x87 family: which file of x87_*.cc executes an instruction.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// FWAIT, or an escape opcode that one of the files knows.
template <class D>
Handler<D> SelectX87(const Insn& insn) {
  constexpr Selector<D> kFiles[] = {
      SelectX87Arithmetic<D>, SelectX87Compare<D>,  SelectX87Load<D>,
      SelectX87Store<D>,      SelectX87Register<D>, SelectX87Function<D>,
      SelectX87Control<D>};
  for (const Selector<D> select : kFiles) {
    if (const Handler<D> handler = select(insn)) {
      return handler;
    }
  }
  return nullptr;
}

constexpr const char* kMnemonics[] = {
    "f2xm1",  "fabs",    "fadd",    "faddp",   "fbld",     "fbstp",   "fchs",
    "fcmovb", "fcmovbe", "fcmove",  "fcmovnb", "fcmovnbe", "fcmovne", "fcmovnu",
    "fcmovu", "fcom",    "fcomi",   "fcomip",  "fcompi",   "fcomp",   "fcompp",
    "fcos",   "fdecstp", "fdiv",    "fdivp",   "fdivr",    "fdivrp",  "ffree",
    "ffreep", "fiadd",   "ficom",   "ficomp",  "fidiv",    "fidivr",  "fild",
    "fimul",  "fincstp", "fist",    "fistp",   "fisttp",   "fisub",   "fisubr",
    "fld",    "fld1",    "fldcw",   "fldenv",  "fldl2e",   "fldl2t",  "fldlg2",
    "fldln2", "fldpi",   "fldz",    "fmul",    "fmulp",    "fnclex",  "fninit",
    "fnop",   "fnsave",  "fnstcw",  "fnstenv", "fnstsw",   "fpatan",  "fprem",
    "fprem1", "fptan",   "frndint", "frstor",  "fscale",   "fsin",    "fsincos",
    "fsqrt",  "fst",     "fstp",    "fsub",    "fsubp",    "fsubr",   "fsubrp",
    "ftst",   "fucom",   "fucomi",  "fucomip", "fucompi",  "fucomp",  "fucompp",
    "fwait",  "fxam",    "fxch",    "fxtract", "fyl2x",    "fyl2xp1", "wait"};

}  // namespace

template <class D>
void RegisterX87(HandlerTable<D>& table) {
  for (const char* mnemonic : kMnemonics) {
    table[mnemonic] = SelectX87<D>;
  }
}

CLEW_INSTANTIATE_FAMILY(RegisterX87);

}  // namespace clew::machine
