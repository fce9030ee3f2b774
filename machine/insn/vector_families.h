#ifndef CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
#define CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_

#include "machine/insn.h"

namespace clew::machine {

// The SSE and x87 families: declared here, called from here.
template <class D>
void RegisterVectorFamilies(HandlerTable<D>& table) {
  (void)table;  // none yet
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
