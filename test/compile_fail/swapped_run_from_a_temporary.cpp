// A run of the current version with a callback starts at once, so a temporary would be destroyed before it is copied.
// expect: the range is a temporary
#include <coaccel/device/plan.hpp>
#include <coaccel/serve/hot_swap.hpp>

#include <vector>

void start(const coaccel::serve::hot_swap<coaccel::plan>& model, std::vector<float>& y)
{
    model.async_run(coaccel::from(std::vector<float>{1, 2}), coaccel::to(y), [](coaccel::error_code) {});
}
