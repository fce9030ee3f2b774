#ifndef CLEW_TESTS_SOLVER_TIME_LIMIT_H_
#define CLEW_TESTS_SOLVER_TIME_LIMIT_H_

namespace clew::solver {

// Where time is to decide nothing.
inline constexpr double kLimitS = 600;

}  // namespace clew::solver

#endif  // CLEW_TESTS_SOLVER_TIME_LIMIT_H_
