#ifndef CLEW_REPLAYER_GDB_TLS_H_
#define CLEW_REPLAYER_GDB_TLS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/units.h"
#include "replayer/target.h"

namespace clew::replayer::gdb {

// glibc's own description of where a struct link_map has the number of its
// module, made for debuggers (nptl_db): three 32-bit words, the size in bits,
// the number of elements, and the offset.
inline constexpr std::string_view kModuleIdSymbol =
    "_thread_db_link_map_l_tls_modid";

// A thread-local variable, as gdb asks for it.
struct TlsVariable {
  Tid thread;
  uint64_t offset = 0;    // in the thread-local storage of its module
  uint64_t link_map = 0;  // of its module; 0: the program, if static
};

// Returns the variable's address, by the tables that glibc keeps for x86-64.
// `module_id_desc` is the address of kModuleIdSymbol in the program, if that is
// known; without it only a static program's variables are found. Returns
// nullopt if the thread does not exist or has no storage for it (yet), or if
// the tables make no sense.
std::optional<uint64_t> FindTls(const ReplayTarget& target,
                                const TlsVariable& variable,
                                std::optional<uint64_t> module_id_desc);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_TLS_H_
