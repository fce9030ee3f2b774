#include "tests/e2e/truth/true_schedule.h"

#include <fstream>

namespace clew::e2e {

Result<std::vector<Turn>> ReadTurns(const std::string& path) {
  std::vector<Turn> turns;
  std::ifstream file(path);
  int32_t thread = 0;
  for (uint64_t tick = 0; file >> thread >> tick;) {
    if (!turns.empty()) {
      turns.back().insns = tick - turns.back().start_tick;
    }
    turns.push_back({.thread = Tid(thread), .start_tick = tick});
  }
  if (turns.empty() || turns.back().thread != Tid(0)) {
    return CorruptInput("{}: no turns, or the last one has no end", path);
  }
  return turns;
}

std::map<Tid, std::vector<uint64_t>> TrueTicks(const std::vector<Turn>& turns) {
  std::map<Tid, std::vector<uint64_t>> ticks;
  for (const Turn& turn : turns) {
    for (uint64_t i = 1; i <= turn.insns; ++i) {
      ticks[turn.thread].push_back(turn.start_tick + i);
    }
  }
  return ticks;
}

std::vector<ScheduleStep> TrueSchedule(const std::vector<Turn>& turns) {
  std::map<Tid, uint64_t> retired;
  std::vector<ScheduleStep> steps;
  for (const Turn& turn : turns) {
    if (turn.insns > 0) {
      retired[turn.thread] += turn.insns;
      steps.push_back(
          {.thread = turn.thread, .until_insn = retired[turn.thread]});
    }
  }
  return steps;
}

}  // namespace clew::e2e
