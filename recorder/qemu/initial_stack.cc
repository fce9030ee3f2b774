#include "recorder/qemu/initial_stack.h"

#include <algorithm>
#include <span>

#include "common/text/path_names.h"

namespace clew::recorder {

uint64_t InitialStack::Aux(uint64_t type) const {
  const auto found = std::ranges::find_if(
      auxv, [&](const auto& a) { return a.a_type == type; });
  return found == auxv.end() ? 0 : found->a_un.a_val;
}

std::optional<uint64_t> InitialStack::AddrOf(uint64_t type) const {
  for (size_t i = 0; i < auxv.size(); ++i) {
    if (auxv[i].a_type == type) {
      return auxv_addr + i * sizeof(Elf64_auxv_t);
    }
  }
  return std::nullopt;
}

std::vector<std::byte> InitialStack::AuxvBytes() const {
  const auto bytes = std::as_bytes(std::span(auxv));
  return {bytes.begin(), bytes.end()};
}

std::string InitialStack::ProgramName() const {
  return BaseName(arguments.empty() ? "" : arguments[0]);
}

std::string InitialStack::CommandLine() const {
  std::string line;
  for (const std::string& argument : arguments) {
    line += (line.empty() ? "" : " ") + argument;
  }
  return line;
}

InitialStack ReadInitialStack(uint64_t rsp, const GuestMemory& memory) {
  constexpr size_t kTextMax = 4096;
  InitialStack stack;
  uint64_t at = rsp + 8;
  for (;; at += 8) {
    const uint64_t argument = memory.Load<uint64_t>(at).value_or(0);
    if (argument == 0) {
      break;
    }
    stack.arguments.push_back(memory.Text(argument, kTextMax));
  }
  at += 8;
  while (memory.Load<uint64_t>(at).value_or(0) != 0) {
    at += 8;
  }
  at += 8;
  stack.auxv_addr = at;
  for (;; at += sizeof(Elf64_auxv_t)) {
    const auto entry = memory.Load<Elf64_auxv_t>(at);
    if (!entry.has_value()) {
      return stack;
    }
    stack.auxv.push_back(*entry);
    if (entry->a_type == AT_NULL) {
      return stack;
    }
  }
}

}  // namespace clew::recorder
