#include "solver/order_edges.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace clew::solver {
namespace {

class Edges {
 public:
  void Add(uint64_t word, AccessKind kind, InsnRef at) {
    Word& seen = words_[word];
    if (seen.written) {
      Add(seen.write, at);
    }
    if (!Writes(kind)) {
      seen.reads.push_back(at);
      return;
    }
    for (const InsnRef& read : seen.reads) {
      Add(read, at);
    }
    seen = {.written = true, .write = at, .reads = {}};
  }
  std::vector<OrderEdge> Take() { return std::move(edges_); }

 private:
  struct Word {
    bool written = false;
    InsnRef write;
    std::vector<InsnRef> reads;  // since then
  };
  void Add(InsnRef before, InsnRef after) {
    if (before.thread != after.thread) {
      edges_.push_back({.before = before, .after = after});
    }
  }
  std::unordered_map<uint64_t, Word> words_;
  std::vector<OrderEdge> edges_;
};

}  // namespace

std::vector<OrderEdge> EdgesOf(const symbolic::BuiltTrace& built,
                               const constraints::AccessOrder& order) {
  std::vector<size_t> next(built.insns.size());
  Edges edges;
  for (const uint32_t thread : order) {
    const size_t index = next[thread]++;
    const constraints::TraceAccess& access =
        built.trace.threads[thread].accesses[index];
    const uint64_t addr = access.addr.as_int();
    const uint64_t last = (addr + access.size_bytes - 1) / 8;
    for (uint64_t word = addr / 8; word <= last; ++word) {
      edges.Add(word, access.kind, {thread, built.insns[thread][index]});
    }
  }
  return edges.Take();
}

}  // namespace clew::solver
