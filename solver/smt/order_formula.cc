#include "solver/smt/order_formula.h"

#include <algorithm>
#include <map>
#include <vector>

namespace clew::solver {

using constraints::ConstraintTrace;
using constraints::Location;
using constraints::Locations;
using constraints::MustOrder;
using constraints::OrderSources;

namespace {

// Writes of one location that are totally ordered by what is certain.
struct Chain {
  uint64_t key;  // which core or thread
  std::vector<uint32_t> writes;
};

class Generator {
 public:
  Generator(const ConstraintTrace& trace, const MustOrder& order,
            const Locations& locations, EncodingKind encoding,
            FormulaSink& sink)
      : trace_(trace),
        order_(order),
        locations_(locations),
        encoding_(encoding),
        sink_(sink) {}

  void Run() {
    for (uint32_t l = 0; l < locations_.all().size(); ++l) {
      chains_ = ChainsOf(locations_.all()[l]);
      for (uint32_t read : locations_.all()[l].reads) {
        Read(l, read, 0);
        if (sink_.stop()) {
          return;
        }
      }
      for (size_t d = 0; d < trace_.final_memory.size(); ++d) {
        const auto range = locations_.OfDemand(d);
        if (l >= range.first && l < range.first + range.count) {
          Read(l, Locations::kAtEnd, d);
        }
      }
    }
  }

 private:
  // By core where the slice is known, else by thread.
  uint64_t ChainKey(uint32_t access) const {
    const auto ref = order_.RefOf(access);
    const uint32_t slice = trace_.At(ref).slice;
    const bool by_core =
        encoding_ != EncodingKind::kClap && slice != constraints::kNoSlice;
    return by_core ? uint64_t{1} << 32 | trace_.slices[slice].core.as_int()
                   : ref.thread;
  }

  // MustOrder orders the accesses of one thread, and, where slices are used as
  // a source, those of one core: Before is total on each chain.
  std::vector<Chain> ChainsOf(const Location& location) const {
    std::map<uint64_t, std::vector<uint32_t>> by_key;
    for (const auto& writes : location.writes) {
      for (uint32_t write : writes) {
        by_key[ChainKey(write)].push_back(write);
      }
    }
    std::vector<Chain> chains;
    for (auto& [key, writes] : by_key) {
      std::ranges::sort(
          writes, [&](uint32_t a, uint32_t b) { return order_.Before(a, b); });
      chains.push_back({key, std::move(writes)});
    }
    return chains;
  }

  void Read(uint32_t location, uint32_t read, size_t demand_index) {
    sink_.BeginRead(location, read, demand_index);
    for (uint32_t write : locations_.Candidates(location, read)) {
      sink_.BeginMatch(write);
      Match(write, read);
      sink_.EndMatch();
    }
    sink_.EndRead();
  }

  bool CertainlyBefore(uint32_t a, uint32_t b) const {
    if (a == Locations::kInitial || b == Locations::kAtEnd) {
      return true;
    }
    return b != Locations::kInitial && a != Locations::kAtEnd &&
           order_.Before(a, b);
  }

  void Match(uint32_t write, uint32_t read) {
    if (!CertainlyBefore(write, read)) {
      One(write, read);
    }
    for (const Chain& chain : chains_) {
      if (encoding_ == EncodingKind::kClap) {
        PairWise(chain, write, read);
      } else {
        Cut(chain, write, read);
      }
    }
  }

  // The chain's writes that are not certainly before the match's write nor
  // certainly after the read. Sound also where a chain is only a thread's.
  std::span<const uint32_t> Open(const Chain& chain, uint32_t write,
                                 uint32_t read) const {
    auto begin = chain.writes.begin();
    auto end = chain.writes.end();
    while (begin != end && write != Locations::kInitial &&
           (*begin == write || order_.Before(*begin, write))) {
      ++begin;
    }
    while (begin != end && read != Locations::kAtEnd &&
           (*(end - 1) == read || order_.Before(read, *(end - 1)))) {
      --end;
    }
    return {begin, end};
  }

  void PairWise(const Chain& chain, uint32_t write, uint32_t read) {
    for (uint32_t other : Open(chain, write, read)) {
      BeforeOrAfter(other, other, write, read);
    }
  }

  // The last of the chain before `write`, the next one after `read`: for each
  // place where the chain can be cut, one alternative.
  void Cut(const Chain& chain, uint32_t write, uint32_t read) {
    const auto open = Open(chain, write, read);
    if (open.empty()) {
      return;
    }
    alternatives_.clear();
    for (size_t i = 0; i <= open.size(); ++i) {
      Alternative alternative;
      const bool possible =
          (i == 0 || Require(open[i - 1], write, alternative)) &&
          (i == open.size() || Require(read, open[i], alternative));
      if (possible && alternative.count == 0) {
        return;  // certain
      }
      if (possible) {
        alternatives_.push_back(alternative);
      }
    }
    sink_.Unit(alternatives_);
  }

  // before < write or read < after.
  void BeforeOrAfter(uint32_t before, uint32_t after, uint32_t write,
                     uint32_t read) {
    alternatives_.clear();
    Alternative first;
    Alternative second;
    if (Require(before, write, first)) {
      alternatives_.push_back(first);
    }
    if (Require(read, after, second)) {
      alternatives_.push_back(second);
    }
    sink_.Unit(alternatives_);
  }

  void One(uint32_t before, uint32_t after) {
    Alternative alternative;
    alternatives_.clear();
    if (Require(before, after, alternative)) {
      alternatives_.push_back(alternative);
    }
    sink_.Unit(alternatives_);
  }

  // The initial value is before all accesses, a final demand behind all.
  // Adds a < b to the alternative unless it is certain; false if impossible.
  bool Require(uint32_t a, uint32_t b, Alternative& alternative) const {
    if (a == b || b == Locations::kInitial || a == Locations::kAtEnd ||
        CertainlyBefore(b, a)) {
      return false;
    }
    if (!CertainlyBefore(a, b)) {
      alternative.atoms[alternative.count++] = {a, b};
    }
    return true;
  }

  const ConstraintTrace& trace_;
  const MustOrder& order_;
  const Locations& locations_;
  EncodingKind encoding_;
  FormulaSink& sink_;
  std::vector<Chain> chains_;
  std::vector<Alternative> alternatives_;
};

class CountingSink final : public FormulaSink {
 public:
  void BeginRead(uint32_t, uint32_t, size_t) override {}
  void BeginMatch(uint32_t) override { ++count; }  // its value
  void Unit(std::span<const Alternative>) override { ++count; }
  void EndMatch() override {}
  void EndRead() override {}
  uint64_t count = 0;
};

// Writes of one thread are ordered, so only pairs of two threads are looked at.
// Pairs of writes of one location whose order is open.
uint64_t CountOpenPairs(const Location& location, const MustOrder& order) {
  uint64_t count = 0;
  for (size_t t = 0; t < location.writes.size(); ++t) {
    for (size_t u = t + 1; u < location.writes.size(); ++u) {
      for (uint32_t a : location.writes[t]) {
        for (uint32_t b : location.writes[u]) {
          count += !order.Before(a, b) && !order.Before(b, a) ? 1 : 0;
        }
      }
    }
  }
  return count;
}

FormulaCounts CountReadFrom(const ConstraintTrace& trace,
                            const MustOrder& order,
                            const Locations& locations) {
  FormulaCounts counts;
  for (uint32_t l = 0; l < locations.all().size(); ++l) {
    const Location& location = locations.all()[l];
    counts.variables += CountOpenPairs(location, order);
    for (uint32_t read : location.reads) {
      const size_t candidates = locations.Candidates(l, read).size();
      counts.variables += candidates;
      counts.read_write += candidates + 1;  // values, and one must be chosen
    }
  }
  // Order constraints are not counted: the theory knows them without a clause.
  counts.constraints = counts.read_write + trace.path.size();
  return counts;
}

}  // namespace

const char* ToString(EncodingKind encoding) {
  switch (encoding) {
    case EncodingKind::kClap:
      return "clap";
    case EncodingKind::kCore:
      return "core";
    case EncodingKind::kTime:
      return "time";
    case EncodingKind::kReadFrom:
      return "read-from";
  }
  return "?";
}

OrderSources SourcesOf(EncodingKind encoding) {
  switch (encoding) {
    case EncodingKind::kClap:
      return {false, false};
    case EncodingKind::kCore:
      return {true, false};
    default:
      return {true, true};
  }
}

void GenerateReadWrite(const ConstraintTrace& trace, const MustOrder& order,
                       const Locations& locations, EncodingKind encoding,
                       FormulaSink& sink) {
  Generator(trace, order, locations, encoding, sink).Run();
}

FormulaCounts CountFormula(const ConstraintTrace& trace,
                           EncodingKind encoding) {
  const auto order = MustOrder::Compute(trace, SourcesOf(encoding));
  if (!order) {
    return {};
  }
  const Locations locations(trace, *order);
  if (encoding == EncodingKind::kReadFrom) {
    return CountReadFrom(trace, *order, locations);
  }
  CountingSink sink;
  GenerateReadWrite(trace, *order, locations, encoding, sink);
  FormulaCounts counts;
  counts.variables = order->access_count();
  counts.read_write = sink.count;
  counts.constraints = sink.count + order->edges().size() + trace.path.size();
  return counts;
}

}  // namespace clew::solver
