#ifndef CLEW_SOLVER_DOUBTS_H_
#define CLEW_SOLVER_DOUBTS_H_

#include <string>
#include <vector>

#include "follower/recording.h"
#include "follower/tape.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// Returns those of the doubts of DoubtsOf that are known without reading the
// inputs; they are also told if the search has not refuted anything.
std::vector<std::string> DoubtsAtOnce(const follower::Recording& recording,
                                      const WordTable& words);

// Returns why a search that has refuted every choice proves nothing about the
// recorded run: phrases for people. If there are none, the evidence contradicts
// itself. This is the one place that stands between a refutation and the word
// "unsat" (docs/design/solve.md, "When unsat is said").
std::vector<std::string> DoubtsOf(const follower::Recording& recording,
                                  follower::Tape& tape, const WordTable& words);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_DOUBTS_H_
