#ifndef CLEW_TESTS_LITMUS_LITMUS_PROGRAMS_H_
#define CLEW_TESTS_LITMUS_LITMUS_PROGRAMS_H_

#include <cstddef>
#include <span>

namespace clew::test {

struct LitmusCase {
  const char* name;
  const char* program;  // ParseLitmus
  size_t sc;            // outcomes under each model
  size_t tso;
  size_t pso;
};

std::span<const LitmusCase> LitmusCases();

}  // namespace clew::test

#endif  // CLEW_TESTS_LITMUS_LITMUS_PROGRAMS_H_
