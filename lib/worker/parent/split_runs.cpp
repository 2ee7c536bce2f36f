#include "worker/parent/split_runs.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace coaccel::worker {

using detail::request;

namespace {

bool is_plan_run(const bound_op& o) noexcept
{
    return o.info->lib == library::plan && o.info->id == info_of<detail::plan_run_op>().id;
}

} // namespace

class split_runs::part final : public request {
public:
    part(const request& r, std::size_t i) noexcept
    {
        ops = r.ops.subspan(i, 1);
        options = r.options;
        launched = r.launched;
        arrived = r.arrived;
        sequence = r.sequence;
    }

    void post() override {}
    void destroy() noexcept override {}
};

struct split_runs::split {
    request* who = nullptr;
    std::list<part> parts;
    std::size_t left = 0;
    error_code ec;
};

split_runs::split_runs() = default;
split_runs::~split_runs() = default;

bool split_runs::has_copies(const request& r) noexcept
{
    return r.ops.size() > 1 && std::ranges::any_of(r.ops, is_plan_run);
}

error_code split_runs::check(const request& r) noexcept
{
    const auto run = std::ranges::find_if(r.ops, is_plan_run);
    if (run == r.ops.end())
        return {};
    const auto has_role = [](op_role role) { return [role](const bound_op& o) { return o.info->role == role; }; };
    if (std::all_of(r.ops.begin(), run, has_role(op_role::write)) &&
        std::all_of(run + 1, r.ops.end(), has_role(op_role::read)))
        return {};
    return detail::op_error(errc::invalid_argument, detail::plan_run_op::name,
                            {"only writes may precede it in its request, and only reads may follow it"});
}

void split_runs::start(request& r, const std::function<void(request&)>& submit)
{
    const auto s = splits_.emplace(splits_.end());
    s->who = &r;
    s->left = r.ops.size();
    std::vector<request*> all;
    all.reserve(r.ops.size());
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
        all.push_back(&s->parts.emplace_back(r, i));
        parts_.emplace(all.back(), s);
    }
    // The split exists at least until its last part is submitted; it may end with it.
    for (request* p : all)
        submit(*p);
}

request& split_runs::whole(request& r) const noexcept
{
    const auto found = parts_.find(&r);
    return found == parts_.end() ? r : *found->second->who;
}

error_code split_runs::failure(const request& r) const noexcept
{
    const auto found = parts_.find(&r);
    return found == parts_.end() ? error_code() : found->second->ec;
}

std::optional<split_runs::result> split_runs::ended(const request& part, const error_code& ec)
{
    const auto found = parts_.find(&part);
    const auto s = found->second;
    parts_.erase(found);
    if (ec && !s->ec)
        s->ec = ec;
    if (--s->left > 0)
        return std::nullopt;
    const result made{s->who, s->ec};
    splits_.erase(s);
    return made;
}

void split_runs::take_all(const std::function<void(request&)>& function)
{
    parts_.clear();
    for (std::list<split> all = std::exchange(splits_, {}); const split& s : all)
        function(*s.who);
}

} // namespace coaccel::worker
