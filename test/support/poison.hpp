#ifndef COACCEL_TEST_SUPPORT_POISON_HPP
#define COACCEL_TEST_SUPPORT_POISON_HPP

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/batch_model.hpp>

#include <array>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

// A plan whose runs end the process of their context for certain inputs. Its plug-in is poison_plugin.cpp.
namespace test {

/// The first element of an input says what a run does.
enum class poison : int {
    none = 0,   ///< It ends as usual.
    abort = -1, ///< SIGABRT.
    segv = -2,  ///< SIGSEGV.
    exit = -3,  ///< The process exits.
    hang = -4,  ///< It never ends.
    slow = -5,  ///< It sleeps for as many milliseconds as the second element says, then ends as usual.
};

/// Those that end the process at once.
inline constexpr std::array deadly{poison::abort, poison::segv, poison::exit};

/// The number of elements of an input and an output.
constexpr std::size_t poison_elements = 4;

/// y = 2 x + 1
inline coaccel::plan_description poisonable_plan(bool repeatable = true)
{
    coaccel::plan_builder b("poisonable");
    const auto x = b.input<float>(poison_elements);
    const auto y = b.output<float>(poison_elements);
    const auto one = b.constant<float>(std::vector<float>(poison_elements, 1));
    const auto call = coaccel::plugin::call("twice", coaccel::in(x), coaccel::out(y));
    if (repeatable)
        b.add(coaccel::pure(call));
    else
        b.add(call);
    b.add(coaccel::blas::axpy<float>{.x = one, .y = y, .n = poison_elements, .alpha = 1});
    return b.finish().value();
}

/// As long as this exists, workers that this process starts end when they load fatal_plan().
class fatal_loads {
public:
    fatal_loads() { std::ofstream made(path_); }
    ~fatal_loads() { ::unlink(path_.c_str()); }
    fatal_loads(const fatal_loads&) = delete;
    fatal_loads& operator=(const fatal_loads&) = delete;

private:
    const std::string path_ = "/tmp/coaccel-fatal-loads-" + std::to_string(::getpid());
};

/// y = 2 x
inline coaccel::plan_description fatal_plan()
{
    coaccel::plan_builder b("fatal");
    const auto x = b.input<float>(poison_elements);
    const auto y = b.output<float>(poison_elements);
    b.add(coaccel::pure(coaccel::plugin::call("fatal", coaccel::in(x), coaccel::out(y))));
    return b.finish().value();
}

/// The same for this many rows, each of which can end the process.
inline coaccel::serve::batch_plan poisonable_rows(std::uint32_t rows)
{
    const std::size_t all = rows * poison_elements;
    coaccel::plan_builder b("rows" + std::to_string(rows));
    const auto x = b.input<float>(all);
    const auto y = b.output<float>(all);
    const auto one = b.constant<float>(std::vector<float>(all, 1));
    for (std::uint32_t i = 0; i < rows; ++i)
        b.add(coaccel::pure(coaccel::plugin::call("twice", coaccel::in(x.subspan(i * poison_elements, poison_elements)),
                                                  coaccel::out(y.subspan(i * poison_elements, poison_elements)))));
    b.add(coaccel::blas::axpy<float>{.x = one, .y = y, .n = all, .alpha = 1});
    return {rows, b.finish().value()};
}

inline coaccel::serve::batch_model poisonable_model()
{
    return coaccel::serve::batch_model::create({poisonable_rows(1), poisonable_rows(8)}).value();
}

inline std::vector<float> poison_input(poison what, float second = 0)
{
    std::vector<float> x(poison_elements, 7);
    x[0] = static_cast<float>(what);
    x[1] = second;
    return x;
}

inline std::vector<float> poison_answer(const std::vector<float>& x)
{
    auto y = x;
    for (float& v : y)
        v = 2 * v + 1;
    return y;
}

} // namespace test

#endif
