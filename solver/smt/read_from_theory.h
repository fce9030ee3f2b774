#ifndef CLEW_SOLVER_SMT_READ_FROM_THEORY_H_
#define CLEW_SOLVER_SMT_READ_FROM_THEORY_H_

#include <cstdint>
#include <vector>

#include "constraints/locations.h"
#include "constraints/must_order.h"
#include "constraints/trace.h"
#include "solver/smt/acyclic_graph.h"

namespace clew::solver {

// The order theory behind the Booleans "this read returns that write" and "this
// write is before that one": whether what is true so far can be put into one
// order of all accesses. It knows nothing of Z3.
//
// Edges: program order and all else that is certain; write to its reader;
// write order; reader to every write after the one it returned.
//
//     W1 --write order--> W2          R returns W1, and W1 is before W2:
//      \                  ^           so R is before W2 ("from-read"), or it
//       \--read-from--> R-/           would have returned W2
//
// Invariant: whenever "R returns W1" and "W1 is before W2" are both assigned,
// in either order, the graph leads from R to W2, by an edge with both literals
// as its reasons unless the certain order has such a path. Each of the two
// looks for the other when it is assigned.
//
// Worked example: x is 0. A: x = 1 (W1). B: r = x (R1), then s = x (R2), with
// evidence that r == 1 and s == 0. "R1 returns W1" adds W1 -> R1; "R2 returns
// the initial value" adds R2 -> W1. With R1 -> R2 of program order that is a
// cycle, and the conflict is these two literals: program order needs no reason.
class ReadFromTheory {
 public:
  struct Literal {
    enum class Kind : uint8_t { kReadFrom, kWriteOrder };
    Kind kind;
    uint32_t a;  // kReadFrom: the read; kWriteOrder: one write
    uint32_t
        b;  // the write, or constraints::Locations::kInitial; the other write
    uint32_t location;  // kReadFrom
    // The Boolean says "deviates from the guess": it is false where the
    // statement is true.
    bool inverted;
  };

  // All are borrowed. `guess` lists all accesses in a possible order.
  ReadFromTheory(const constraints::ConstraintTrace& trace,
                 const constraints::MustOrder& order,
                 const constraints::Locations& locations,
                 const std::vector<uint32_t>& guess);

  // Makes a Boolean known to the theory; returns its number.
  uint32_t AddLiteral(const Literal& literal);

  // Gives the Boolean its value. Returns false if it contradicts what is true
  // already; `conflict` then holds numbers of literals that cannot all have the
  // values they have. Nothing more may be assigned until Pop.
  bool Assign(uint32_t literal, bool value, std::vector<uint32_t>& conflict);

  void Push();
  void Pop(uint32_t levels);

  // Returns all accesses in an order consistent with everything assigned.
  std::vector<uint32_t> Order() const;
  uint64_t conflicts() const { return conflicts_; }

 private:
  struct Reader {
    uint32_t read;
    uint32_t location;
    uint32_t literal;
  };
  struct Later {
    uint32_t write;
    uint32_t literal;
  };
  struct Undo {
    enum class Kind : uint8_t { kReader, kLater };
    Kind kind;
    uint32_t write;
  };
  struct Level {
    size_t edges;
    size_t undo;
  };

  bool AddEdge(uint32_t before, uint32_t after, AcyclicGraph::Reasons reasons,
               std::vector<uint32_t>& conflict);
  bool AssignReadFrom(const Literal& literal, uint32_t number,
                      std::vector<uint32_t>& conflict);
  bool AddReaderEdges(const Literal& literal, uint32_t number,
                      const std::vector<uint32_t>& writes,
                      std::vector<uint32_t>& conflict);
  bool AssignWriteOrder(uint32_t first, uint32_t second, uint32_t number,
                        std::vector<uint32_t>& conflict);
  bool WritesTo(uint32_t access, uint32_t location) const;
  // Returns whether `first` is known to be before `second`. Sets `literal` to
  // the one that says so, or to kNoReason if it is certain.
  bool KnownBefore(uint32_t first, uint32_t second, uint32_t& literal) const;

  const constraints::ConstraintTrace& trace_;
  const constraints::MustOrder& order_;
  const constraints::Locations& locations_;
  AcyclicGraph graph_;
  std::vector<Literal> literals_;
  std::vector<std::vector<Reader>> readers_;  // by write
  std::vector<std::vector<Later>> later_;     // by write
  std::vector<Undo> undo_;
  std::vector<Level> levels_;
  uint64_t conflicts_ = 0;
};

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_READ_FROM_THEORY_H_
