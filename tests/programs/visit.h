#ifndef CLEW_TESTS_PROGRAMS_VISIT_H_
#define CLEW_TESTS_PROGRAMS_VISIT_H_

void Visit(void (*visitor)(void));

#endif  // CLEW_TESTS_PROGRAMS_VISIT_H_
