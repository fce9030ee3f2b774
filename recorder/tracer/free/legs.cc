#include "recorder/tracer/free/legs.h"

#include <span>

namespace clew::tracer {

using x86::BranchClass;

Leg& Legs::Table::At(uint32_t number) {
  const size_t part = number / kPart;
  if (part >= parts_.size()) {
    parts_.resize(part + 1);
  }
  if (parts_[part] == nullptr) {
    parts_[part] = std::make_unique<std::array<Leg, kPart>>();
  }
  return (*parts_[part])[number % kPart];
}

void Legs::FollowTables() {
  if (shared_.HasForgotten(forgotten_)) {
    to_edges_.Clear();
    whole_.Clear();
  }
}

Leg* Legs::MakeToEdge(uint32_t number, uint64_t now) {
  const std::span<const Edge> edges = shared_.edges();
  const Edge edge = number < edges.size() ? edges[number] : Edge();
  Leg leg;
  if (edge.offset == 0 || !TakeApart(edge.fragment, edge.offset, now, leg)) {
    return nullptr;
  }
  leg.target = edge.target;
  return &(to_edges_.At(number) = leg);
}

Leg* Legs::MakeWhole(uint32_t number, uint64_t now) {
  const std::span<const Fragment> fragments = shared_.fragments();
  const Fragment fragment =
      number < fragments.size() ? fragments[number] : Fragment();
  Leg leg;
  if (!TakeApart(number, fragment.code_bytes, now, leg)) {
    return nullptr;
  }
  leg.is_indirect = fragment.end == FragmentEnd::kIndirect;
  leg.falls = fragment.end == FragmentEnd::kFalls &&
              fragment.end_target > fragment.start;
  leg.target = fragment.end_target;
  return &(whole_.At(number) = leg);
}

bool Legs::TakeApart(uint32_t number, size_t bytes, uint64_t now, Leg& leg) {
  const std::span<const Fragment> fragments = shared_.fragments();
  if (number == 0 || number >= fragments.size()) {
    return false;
  }
  const Fragment fragment = fragments[number];
  const std::span<const uint8_t> code = shared_.code(fragment);
  if (bytes == 0 || bytes > code.size()) {
    return false;
  }
  const recorder::CodeStretch stretch = {fragment.start, code.first(bytes),
                                         number};
  const auto ran = ran_code_.Find(stretch, now);
  if (!ran) {
    return false;
  }
  leg.fragment = number;
  leg.start = fragment.start;
  leg.behind = fragment.start + bytes;
  leg.insns = static_cast<uint32_t>((*ran)->CountInsns(bytes));
  leg.version = (*ran)->version;
  leg.changes = code_.changes();
  for (const recorder::RanStretch::Branch& branch : (*ran)->branches) {
    if (branch.end > bytes) {
      break;
    }
    if (branch.end == bytes) {
      leg.last = branch.branch_class;
      if (leg.last == BranchClass::kFar) {
        return false;
      }
    } else if (branch.branch_class == BranchClass::kConditional) {
      ++leg.not_taken;
    } else {
      return false;  // a fragment ends with any other
    }
  }
  return true;
}

}  // namespace clew::tracer
