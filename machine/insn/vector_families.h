#ifndef CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
#define CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_

#include "machine/insn.h"

namespace clew::machine {

// The SSE, AVX and x87 families: declared here, called from here.
template <class D>
void RegisterSseMove(HandlerTable<D>& table);
template <class D>
void RegisterSseInteger(HandlerTable<D>& table);
template <class D>
void RegisterSseShuffle(HandlerTable<D>& table);
template <class D>
void RegisterSseFloat(HandlerTable<D>& table);
template <class D>
void RegisterSseString(HandlerTable<D>& table);
template <class D>
void RegisterSseState(HandlerTable<D>& table);
template <class D>
void RegisterAvx(HandlerTable<D>& table);
template <class D>
void RegisterGather(HandlerTable<D>& table);
template <class D>
void RegisterFused(HandlerTable<D>& table);
template <class D>
void RegisterCrypto(HandlerTable<D>& table);
template <class D>
void RegisterSaveState(HandlerTable<D>& table);
template <class D>
void RegisterX87(HandlerTable<D>& table);

template <class D>
void RegisterVectorFamilies(HandlerTable<D>& table) {
  RegisterSseMove(table);
  RegisterSseInteger(table);
  RegisterSseShuffle(table);
  RegisterSseFloat(table);
  RegisterSseString(table);
  RegisterSseState(table);
  RegisterAvx(table);
  RegisterGather(table);
  RegisterFused(table);
  RegisterCrypto(table);
  RegisterSaveState(table);
  RegisterX87(table);
}

}  // namespace clew::machine

#endif  // CLEW_MACHINE_INSN_VECTOR_FAMILIES_H_
