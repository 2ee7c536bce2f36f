// A run with a callback starts at once, so a temporary would be destroyed before it is copied.
// expect: the range is a temporary
#include <coaccel/device/plan.hpp>

#include <vector>

void start(const coaccel::plan& p, std::vector<float>& y)
{
    p.async_run(coaccel::from(std::vector<float>{1, 2}), coaccel::to(y), [](coaccel::error_code) {});
}
