#include "machine/fxsave.h"

#include "machine/insn/x87_stack.h"

namespace clew::machine {

void RestoreX87(const FxsaveArea& area, X87& x87) {
  X87Stack stack(x87);
  stack.SetControl(area.head.control);
  stack.SetStatus(area.head.status);
  for (unsigned i = 0; i < 8; ++i) {
    stack.Set(i, area.x87[i]);
  }
  stack.SetNonEmptyMask(static_cast<uint8_t>(area.head.tags));
}

}  // namespace clew::machine
