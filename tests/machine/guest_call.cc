#include "tests/machine/guest_call.h"

#include <fstream>
#include <sstream>
#include <string>

#include "common/check.h"
#include "tests/support/own_memory.h"

namespace clew::machine {
namespace {

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t prot = 0;
  std::string path;
};

std::vector<Mapping> OwnMappings() {
  std::vector<Mapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    std::string perms, offset, device, inode;
    char dash = 0;
    std::istringstream in(line);
    in >> std::hex >> mapping.begin >> dash >> mapping.end >> perms >> offset >>
        device >> inode >> mapping.path;
    mapping.prot = (perms.at(0) == 'r' ? kProtRead : 0) |
                   (perms.at(1) == 'w' ? kProtWrite : 0) |
                   (perms.at(2) == 'x' ? kProtExec : 0);
    mappings.push_back(mapping);
  }
  return mappings;
}

// The mapping that holds this code, and its neighbours: one image.
bool SameImage(const std::string& path) {
  static const std::string own = [] {
    const auto here = reinterpret_cast<uint64_t>(&OwnMappings);
    for (const Mapping& mapping : OwnMappings()) {
      if (here >= mapping.begin && here < mapping.end) {
        return mapping.path;
      }
    }
    return std::string();
  }();
  return path == own;
}

}  // namespace

GuestCall::GuestCall() {
  memory_.Map(kStackAt, kStackBytes, kProtRead | kProtWrite);
  uint64_t image_end = 0;
  for (const Mapping& mapping : OwnMappings()) {
    // .bss has no path of its own and follows the image.
    const bool follows = mapping.path.empty() && mapping.begin == image_end;
    if (!SameImage(mapping.path) && !follows) {
      continue;
    }
    image_end = mapping.end;
    if ((mapping.prot & kProtRead) == 0) {
      continue;
    }
    const uint64_t size = mapping.end - mapping.begin;
    memory_.Map(mapping.begin, size, mapping.prot);
    CLEW_CHECK(memory_.Poke(mapping.begin, test::ReadOwn(mapping.begin, size)),
               "copy");
  }
}

Registers GuestCall::Prepare(uint64_t function,
                             const std::vector<uint64_t>& args) {
  static constexpr Gpr kArgs[] = {kRdi, kRsi, kRdx, kRcx, kR8, kR9};
  Registers regs;
  for (size_t i = 0; i < args.size(); ++i) {
    regs.gpr[kArgs[i]] = args[i];
  }
  regs.gpr[kRsp] = kStackAt + kStackBytes - 4096 - 8;
  CLEW_CHECK(memory_.Store(regs.gpr[kRsp], kReturnTo), "stack");
  regs.rip = function;
  return regs;
}

GuestResult RunToReturn(Memory& memory, CodeCache& code, Registers regs,
                        uint64_t max_insns) {
  GuestResult result;
  Machine machine(regs, memory, code);
  result.stop = machine.Run(max_insns);
  result.insns = result.stop.insns_retired;
  result.returned =
      result.stop.kind == StopKind::kFault && regs.rip == GuestCall::kReturnTo;
  result.regs = regs;
  return result;
}

}  // namespace clew::machine
