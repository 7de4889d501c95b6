// A test is TEST(name) { ... }. A program runs all of its tests, or those whose name contains its first argument.
#pragma once

#include <functional>
#include <sstream>
#include <string>

namespace anabranch::check {

// Whether a sanitizer watches: then code runs ten times as long.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// Thrown by a check that does not hold; no std::exception, so that CHECK_THROWS does not take it for one that is
// expected. It ends the test, so check on the test's own thread only.
struct Failed {
  std::string what;
};

// Thrown by `skip`.
struct Skipped {
  std::string reason;
};

// Adds a test to the program; to be called before main, as TEST does.
bool add(const char* name, void (*body)());

// Text that is known comes as it is: a string made at each check would take most of a test's compilation.
[[noreturn]] void fail(const char* file, int line, const char* what);
// Ends the test, which is reported with the reason and does not count as passed.
[[noreturn]] void skip(const std::string& reason);

// Waits for something that another thread is about to bring about and that has no wait of its own; false if a minute
// passes.
bool eventually(const std::function<bool()>& condition);

template <class A, class B>
void equal(const A& a, const B& b, const char* file, int line, const char* what) {
  if (a == b) return;
  std::ostringstream text;
  text << what;
  if constexpr (requires { text << a << b; }) text << ", but " << a << " != " << b;
  fail(file, line, text.str().c_str());
}

}  // namespace anabranch::check

#define TEST(name)                                                                      \
  static void name();                                                                   \
  static const bool name##_added [[maybe_unused]] = anabranch::check::add(#name, name); \
  static void name()

// A test that begins with a new `setting`, a class, whose members its body names.
#define TEST_IN(setting, name)                                                                                 \
  struct name##_test final : setting {                                                                         \
    void run();                                                                                                \
  };                                                                                                           \
  static const bool name##_added [[maybe_unused]] = anabranch::check::add(#name, [] { name##_test().run(); }); \
  void name##_test::run()

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) anabranch::check::fail(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQUAL(a, b) anabranch::check::equal((a), (b), __FILE__, __LINE__, #a " == " #b)

#define CHECK_THROWS(type, expression)                                             \
  do {                                                                             \
    try {                                                                          \
      (void)(expression);                                                          \
      anabranch::check::fail(__FILE__, __LINE__, #expression " throws no " #type); \
    } catch (const type&) {                                                        \
    }                                                                              \
  } while (false)
