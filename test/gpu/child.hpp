#ifndef COACCEL_TEST_GPU_CHILD_HPP
#define COACCEL_TEST_GPU_CHILD_HPP

#include <string>
#include <vector>

// A sticky error kills every context of its process, so tests that cause a fault run in their own process.
namespace test {

/// The body of a child process: returns its exit status; zero means success.
using child_function = int (*)(const std::vector<std::string>& arguments);

/// Registers `function` under a name; use at namespace scope.
struct child {
    child(const char* name, child_function function);
};

/// Runs this program again as the named child. Returns its exit status, or -1 if it was killed or did not end in time;
/// `output` receives the text it printed.
int run_child(const std::string& name, const std::vector<std::string>& arguments, std::string& output);

/// The main function of a child process; returns -1 if this process is not a child.
int main_of_child(int argc, char** argv);

} // namespace test

#endif
