#include "server/model/model_version.hpp"

#include "plan/file/plan_file.hpp"
#include "server/protocol/in_quotes.hpp"
#include "server/protocol/infer_call.hpp"
#include "server/repository/file_content.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::server {
namespace {

std::uint64_t nanoseconds_of(std::chrono::nanoseconds t) noexcept
{
    return static_cast<std::uint64_t>(std::max<std::int64_t>(t.count(), 0));
}

duration_total total_of(const telemetry::histogram_snapshot& h) noexcept
{
    return {h.count, static_cast<std::uint64_t>(h.sum * 1e9)};
}

struct read_model {
    serve::batch_model model;
    bool batched = true;
};

result<read_model> read_file(const std::string& path, const file_identity& file)
{
    BOOST_OUTCOME_TRY(auto content, read_content(path, file));
    const detail::plan_file_source source{
        .bytes = content.bytes, .owner = std::move(content.owner), .check = content_check::hash, .name = path};
    BOOST_OUTCOME_TRY(const auto set, detail::read_plan_set(source));
    // A plan that declares no rows is served as it is: one request for each run.
    if (set.size() == 1 && set[0].rows() == 0) {
        BOOST_OUTCOME_TRY(auto model, serve::batch_model::create({serve::batch_plan{1, set[0]}}));
        return read_model{std::move(model), false};
    }
    BOOST_OUTCOME_TRY(auto model, serve::batch_model::create(set));
    return read_model{std::move(model), true};
}

asio::awaitable<result<read_model>> read_in_background(std::string path, file_identity file)
{
    co_return read_file(path, file);
}

} // namespace

void version_counters::succeeded(std::uint64_t rows, std::chrono::nanoseconds time) noexcept
{
    using namespace std::chrono;
    successes_.fetch_add(1, std::memory_order_relaxed);
    success_ns_.fetch_add(nanoseconds_of(time), std::memory_order_relaxed);
    rows_.fetch_add(rows, std::memory_order_relaxed);
    last_.store(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(), std::memory_order_relaxed);
}

void version_counters::failed(std::chrono::nanoseconds time) noexcept
{
    failures_.fetch_add(1, std::memory_order_relaxed);
    failure_ns_.fetch_add(nanoseconds_of(time), std::memory_order_relaxed);
}

void version_counters::write(model_statistics& to) const noexcept
{
    to.last_inference_ms = static_cast<std::uint64_t>(last_.load(std::memory_order_relaxed));
    to.inferences = rows_.load(std::memory_order_relaxed);
    to.success = {successes_.load(std::memory_order_relaxed), success_ns_.load(std::memory_order_relaxed)};
    to.fail = {failures_.load(std::memory_order_relaxed), failure_ns_.load(std::memory_order_relaxed)};
}

model_statistics model_version::statistics() const
{
    model_statistics s;
    s.model = signature.model;
    s.version = signature.version;
    counters.write(s);
    const auto batches = batcher.stats();
    s.executions = batches.batches;
    s.queue = total_of(batches.queue_time);
    s.compute_input = total_of(batches.form_time);
    s.compute_infer = total_of(batches.run_time);
    return s;
}

void model_version::ended(const error_code& ec) const noexcept
{
    if (ec == errc::plan_quarantined)
        quarantine_.begin(std::chrono::steady_clock::now());
}

error_code model_version::check_quarantine() const
{
    // Reading the clock costs more than all the rest.
    if (!quarantine_.active())
        return {};
    switch (quarantine_.judge(std::chrono::steady_clock::now())) {
    case quarantine::verdict::run: break;
    case quarantine::verdict::revive: batcher.async_revive([](const error_code&) {}); break;
    case quarantine::verdict::refuse:
        return detail::op_error(errc::plan_quarantined, "model",
                                {in_quotes(signature.model), " version ", number,
                                 ": too many requests have ended the context of their device"});
    }
    return {};
}

asio::awaitable<result<version_ptr>> load_version(version_load how)
{
    auto read = co_await asio::co_spawn(how.files, read_in_background(how.path, how.file), asio::use_awaitable);
    if (!read)
        co_return read.error();
    const serve::batch_model model = read.value().model;
    serve::batcher_options options;
    options.name = how.model + "/" + std::to_string(how.number);
    const std::uint32_t largest = model.plans().back().rows;
    options.max_rows = how.options.max_batch == 0 ? largest : std::min(largest, how.options.max_batch);
    options.max_delay = how.options.max_delay;
    options.max_in_flight = how.options.instances;
    options.max_queued.fill(how.options.max_queued);
    std::vector<device> devices = how.devices;
    if (how.options.replicas > 0 && how.options.replicas < devices.size())
        devices.resize(how.options.replicas);
    std::vector<serve::batch_model> models{model};
    BOOST_OUTCOME_CO_TRY(auto batcher, co_await serve::dynamic_batcher::async_create(how.executor, std::move(devices),
                                                                                     std::move(models), options));
    auto metrics = batcher.report_to(how.metrics);
    auto signature = signature_of(model, how.model, std::to_string(how.number), read.value().batched, options.max_rows);
    version_ptr made =
        std::make_shared<const model_version>(how.number, std::move(signature), std::move(batcher), std::move(metrics));
    co_return made;
}

asio::awaitable<result<void>> warm_up(version_ptr version)
{
    const model_signature& s = version->signature;
    infer_request request;
    for (const auto& t : s.inputs) {
        request_input in{t.name, t.type, t.dims, {}};
        if (s.batched)
            in.shape.insert(in.shape.begin(), 1);
        request.inputs.push_back(std::move(in));
    }
    std::size_t largest = 0;
    for (const auto& t : s.inputs)
        largest = std::max<std::size_t>(largest, t.count * size_of(t.type));
    const std::vector<std::byte> zeros(largest);
    for (std::size_t i = 0; i < s.inputs.size(); ++i)
        request.inputs[i].data = std::span(zeros).first(s.inputs[i].count * size_of(s.inputs[i].type));
    infer_call call;
    if (auto ec = match_request(request, s, call))
        co_return ec;
    const std::span<const run_range> ranges = call.ranges;
    BOOST_OUTCOME_CO_TRYV(co_await version->batcher.async_run_all(ranges));
    co_return outcome::success();
}

} // namespace coaccel::server
