#ifndef CLEW_RECORDER_TRACER_FREE_LEG_WALK_H_
#define CLEW_RECORDER_TRACER_FREE_LEG_WALK_H_

#include <cstdint>

#include "common/units.h"
#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/tracer/free/legs.h"
#include "recorder/tracer/path_reader.h"

namespace clew::tracer {

// A thread's way through its legs, by the records of a batch, into a trace:
// what PathReader tells by stretches, where all of it is known. All is inline,
// and has its state in registers: each record of a long run comes through here.
class LegWalk {
 public:
  // From where `reader` is, in user mode. What runs, runs at `now`. Code whose
  // version is later than `version` is left to others. All are borrowed.
  LegWalk(Legs& legs, PathReader& reader, recorder::CoreEncoder& encoder,
          uint64_t now, uint64_t version)
      : legs_(legs),
        reader_(reader),
        encoder_(encoder),
        now_(now),
        version_(version),
        place_(reader.place()) {}

  // Takes the code up to what the record says. Returns false if that is not
  // known; what led up to it may be taken then.
  bool Take(LogRecord record) {
    return (record & kTakenEdge) != 0 ? TakeEdge(record & ~kTakenEdge)
                                      : TakeEntered(record);
  }

  const PathReader::Place& place() const { return place_; }
  // That were taken.
  uint64_t insns() const { return insns_; }

 private:
  bool TakeEdge(uint32_t edge) {
    Leg* const leg = legs_.ToEdge(edge, now_);
    if (leg == nullptr || leg->version > version_) {
      return false;
    }
    while (place_.fragment == 0 ? place_.addr != leg->start
                                : place_.fragment != leg->fragment) {
      if (!Fall()) {
        return false;
      }
    }
    Run(*leg, leg->target);
    return true;
  }

  bool TakeEntered(uint32_t fragment) {
    const uint64_t start = legs_.StartOf(fragment);
    if (start == 0) {
      return false;
    }
    Leg* leg = Whole();
    while (leg != nullptr && !leg->is_indirect && Fall()) {
      leg = Whole();
    }
    if (leg == nullptr || !leg->is_indirect) {
      return false;
    }
    Run(*leg, start);
    place_.fragment = fragment;
    before_ = nullptr;
    return true;
  }

  // That of the fragment where the thread is; nullptr: it is not known.
  Leg* Whole() {
    if (place_.fragment == 0) {
      place_.fragment = FragmentHere();
    }
    Leg* const leg = legs_.Whole(place_.fragment, now_);
    return leg != nullptr && leg->version <= version_ ? leg : nullptr;
  }

  // To where the fragment falls. Returns false if it does not.
  bool Fall() {
    Leg* const leg = Whole();
    if (leg == nullptr || !leg->falls) {
      return false;
    }
    Run(*leg, leg->target);
    return true;
  }

  // Where the leg before led, which most often is known.
  uint32_t FragmentHere() {
    const uint32_t version = reader_.version();
    if (before_ == nullptr) {
      return reader_.FragmentAt(place_.addr);
    }
    if (before_->next == 0 || before_->next_version != version) {
      before_->next = reader_.FragmentAt(place_.addr);
      before_->next_version = version;
    }
    return before_->next;
  }

  void Run(Leg& leg, uint64_t next) {
    encoder_.NotTaken(leg.not_taken);
    encoder_.Branch(leg.last, TraceeAddr(leg.behind), TraceeAddr(next));
    insns_ += leg.insns;
    place_.addr = next;
    place_.fragment = 0;
    before_ = &leg;
  }

  Legs& legs_;
  PathReader& reader_;
  recorder::CoreEncoder& encoder_;
  const uint64_t now_;
  const uint64_t version_;
  PathReader::Place place_;
  uint64_t insns_ = 0;
  Leg* before_ = nullptr;  // the one that led here, if it always leads here
};

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_LEG_WALK_H_
