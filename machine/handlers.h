#ifndef CLEW_MACHINE_HANDLERS_H_
#define CLEW_MACHINE_HANDLERS_H_

#include "common/x86/features.h"
#include "machine/decode.h"
#include "machine/insn.h"

namespace clew::machine {

// The handlers of all families in domain D, for a CPU with certain features: of
// x86::kByHost, those that this host has too.
// (The constructor is in machine/insn/families.h, which knows the families.)
template <class D>
class Handlers {
 public:
  explicit Handlers(x86::FeatureSet features);

  // Returns what executes the instruction; nullptr if the machine does not know
  // it or the CPU does not have it. REQUIRES: decoded.status is kOk.
  Handler<D> Find(const Decoded& decoded) const {
    const HandlerTable<D>& table = decoded.insn.evex ? evex_table_ : table_;
    const auto selector =
        table.find(features_.Contains(decoded.needs) ? decoded.mnemonic
                                                     : decoded.otherwise);
    return selector != table.end() ? selector->second(decoded.insn) : nullptr;
  }

  // Those that can be executed.
  x86::FeatureSet features() const { return features_; }

 private:
  HandlerTable<D> table_;
  // Of encodings with EVEX: they have the mnemonics of those with VEX.
  HandlerTable<D> evex_table_;
  x86::FeatureSet features_;
};

}  // namespace clew::machine

#endif  // CLEW_MACHINE_HANDLERS_H_
