#include "server/http/connection.hpp"
#include "server/http/connection_handlers.hpp"
#include "server/http/page_files.hpp"
#include "server/protocol/documents.hpp"
#include "server/protocol/in_quotes.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace coaccel::server {
namespace {

using detail::http_route;

reply from_telemetry(detail::http_reply&& t)
{
    reply r;
    r.status = t.status;
    r.content_type = t.content_type;
    r.body = std::move(t.body);
    r.page = true;
    return r;
}

/// Whether a page of another site has sent the request, as browsers tell.
bool from_elsewhere(const request_head& head) noexcept
{
    if (head.origin.empty())
        return false;
    const auto scheme = head.origin.find("://");
    return scheme == std::string::npos || std::string_view(head.origin).substr(scheme + 3) != head.host;
}

bool is_for_operators(const route& where) noexcept
{
    return where.where == endpoint::repository_index || where.where == endpoint::repository_load ||
           where.where == endpoint::repository_unload;
}

reply wrong_host_reply(const request_head& head)
{
    return error_reply(421, "Host is " + in_quotes(head.host) + ", expected localhost or an IP address");
}

} // namespace

/// Why a request is refused whose header alone has come; none: it is not.
std::optional<reply> connection::refusal(const route& where)
{
    if (!head_.problem.empty())
        return error_reply(400, head_.problem);
    if (head_.encoded)
        return error_reply(415, "Content-Encoding is not supported: send the body as it is");
    switch (where.where) {
    case endpoint::telemetry: return std::nullopt;
    case endpoint::page_file:
        return core_->serves_host(head_.host) ? std::nullopt : std::optional(wrong_host_reply(head_));
    case endpoint::bad_path: return error_reply(400, "the path is not valid: " + in_quotes(head_.target));
    case endpoint::wrong_method: {
        reply r = error_reply(405, "the method is " + in_quotes(head_.method) +
                                       ", expected one of: " + std::string(where.allowed));
        r.allow = where.allowed;
        return r;
    }
    case endpoint::repository_load:
    case endpoint::repository_unload:
        if (auto r = without_right(where))
            return r;
        return without_control();
    default: return without_right(where);
    }
}

void connection::begin_request()
{
    began_ = clock::now();
    reply_bytes_ = 0;
    enter(phase::running, {});
    must_close_ = false;
    const route where = choose_endpoint(head_.method, head_.target);
    if (auto r = refusal(where))
        return answer(std::move(*r));
    switch (where.where) {
    case endpoint::telemetry: return begin_telemetry();
    case endpoint::page_file: return answer(page_file(core_->options().page_folder, where.model));
    case endpoint::infer: return begin_infer(where);
    case endpoint::repository_load:
    case endpoint::repository_unload: return control_repository(where);
    default: return answer(reply_to(where));
    }
}

/// The header has come and the body has not: a request that is refused must not cost the memory for its body.
void connection::check_early()
{
    // What documents and pages are asked with; a longer body has no use there.
    constexpr std::uint64_t most_unused = 64 * 1024;
    const route where = choose_endpoint(head_.method, head_.target);
    auto r = refusal(where);
    if (!r && where.where != endpoint::infer &&
        (!reader_->content_length() || *reader_->content_length() > most_unused))
        r = error_reply(413, "the body is longer than " + std::to_string(most_unused) +
                                 " bytes, or has no length, and the request needs none");
    if (!r)
        return;
    began_ = clock::now();
    reply_bytes_ = 0;
    must_close_ = true;
    answer(std::move(*r));
}

/// The reply to a request that is not authorized.
std::optional<reply> connection::without_right(const route& where)
{
    // A balancer that watches the server has no key.
    if (where.where == endpoint::server_live || where.where == endpoint::server_ready)
        return std::nullopt;
    const auto& token = core_->options().telemetry_token;
    // The token of the server is not the key of a tenant.
    if (is_for_operators(where) && !token.empty() && detail::has_token(head_.authorization, token))
        return std::nullopt;
    tenant_ = core_->clients().identify(head_.api_key, head_.authorization);
    // A page of another site, whose name leads to this machine, has no key.
    if (tenant_ && !core_->clients().has_key(tenant_) && !core_->serves_host(head_.host))
        return wrong_host_reply(head_);
    if (tenant_)
        return std::nullopt;
    reply r = error_reply(401, head_.api_key.empty() && head_.authorization.empty()
                                   ? "an API key is needed, in the header field X-API-Key"
                                   : "the API key is not known");
    r.authenticate = "Bearer";
    return r;
}

reply connection::reply_to(const route& where)
{
    reply r;
    switch (where.where) {
    case endpoint::server_metadata: r.body = server_document(); return r;
    case endpoint::server_live: r.body = "{\"live\":true}"; return r;
    case endpoint::server_ready:
        if (core_->ready()) {
            r.body = "{\"ready\":true}";
            return r;
        }
        r = error_reply(503, core_->stopping()           ? "the server is stopping"
                             : core_->any_device_works() ? "models are being loaded"
                                                         : "no device works");
        r.retry_after = 1;
        return r;
    case endpoint::repository_index: {
        const auto all = core_->models().index();
        r.body = index_document(all);
        return r;
    }
    case endpoint::model_stats:
        if (where.model.empty()) {
            std::vector<model_statistics> all;
            for (const auto& m : core_->models().all())
                for (const auto& v : m->versions())
                    all.push_back(v->statistics());
            r.body = statistics_document(all);
            return r;
        }
        return model_reply(where);
    default: return model_reply(where);
    }
}

reply connection::model_reply(const route& where)
{
    const auto model = core_->models().find(where.model);
    if (!model)
        return error_reply(404, core_->models().why_not(where.model));
    auto picked = model->pick(where.version);
    if (!picked)
        return error_reply(picked.error() == errc::invalid_argument ? 404 : 503, picked.error().message());
    const model_version& v = *picked.value().version;
    reply r;
    switch (where.where) {
    case endpoint::model_ready:
        if (!core_->any_device_works()) {
            r = error_reply(503, "no device works");
            r.retry_after = 1;
        } else {
            r.body = "{\"ready\":true}";
        }
        break;
    case endpoint::model_config: r.body = config_document(v.signature); break;
    case endpoint::model_stats: {
        std::vector<model_statistics> all;
        if (where.version.empty()) {
            for (const auto& each : model->versions())
                all.push_back(each->statistics());
        } else {
            all.push_back(v.statistics());
        }
        r.body = statistics_document(all);
        break;
    }
    default: {
        std::vector<std::string> versions;
        for (const auto& each : model->versions())
            versions.push_back(each->signature.version);
        r.body = model_document(v.signature, versions);
        break;
    }
    }
    return r;
}

void connection::begin_infer(const route& where)
{
    if (!infer_)
        infer_ = std::make_unique<infer_exchange>();
    infer_exchange& e = *infer_;
    e.model = core_->models().find(where.model);
    if (!e.model)
        return answer(error_reply(404, core_->models().why_not(where.model)));
    auto picked = e.model->pick(where.version);
    if (!picked)
        return answer(picked.error() == errc::invalid_argument ? error_reply(404, picked.error().message())
                                                               : failure_reply(picked.error()));
    e.picked = std::move(picked).value();
    // Before the body is parsed, which takes much longer.
    if (core_->clients().divided()) {
        const auto may = core_->clients().may_send(*tenant_);
        if (!may)
            return answer(failure_reply(may.error()));
        if (!may.value()) {
            reply r = error_reply(429, "tenant " + in_quotes(*tenant_) + " has sent too many requests");
            r.retry_after = std::max<std::int64_t>(may.value().retry_after_seconds(), 1);
            return answer(std::move(r));
        }
    }
    error_code ec = parse_infer_request(body_, head_.json_bytes, e.request);
    if (!ec)
        ec = match_request(e.request, e.picked.version->signature, e.call);
    if (ec)
        return answer(failure_reply(ec));

    const auto& limits = core_->options().limits;
    std::chrono::nanoseconds timeout = limits.request_timeout;
    if (head_.timeout && head_.timeout->count() > 0)
        timeout = *head_.timeout;
    if (e.request.timeout)
        timeout = head_.timeout ? std::min<std::chrono::nanoseconds>(timeout, *e.request.timeout)
                                : std::chrono::nanoseconds(*e.request.timeout);
    e.how = within(std::min(timeout, limits.max_request_timeout));
    e.how.priority = priority_of(e.request.priority);
    e.how.when_full = when_full::fail;
    if (!core_->clients().divided())
        return run_infer();

    e.running = true;
    serve::enter_options enter_how;
    enter_how.deadline = e.how.deadline;
    core_->clients().share().async_enter(*tenant_, enter_how, on_entered{{shared_from_this(), e.cancel.slot()}});
}

void connection::entered(const error_code& ec, serve::permit turn)
{
    if (!ec && phase_ != phase::closed) {
        infer_->turn = std::move(turn);
        try {
            return run_infer();
        } catch (const std::exception&) {
            infer_->running = false;
            infer_->turn.finish(std::chrono::nanoseconds(0));
            return end(status_failed);
        }
    }
    infer_->running = false;
    turn.finish(std::chrono::nanoseconds(0));
    infer_->picked = {};
    if (phase_ != phase::closed)
        answer(failure_reply(ec));
}

void connection::run_infer()
{
    infer_exchange& e = *infer_;
    e.running = true;
    const std::span<const run_range> ranges = e.call.ranges;
    e.picked.version->batcher.with(e.how).async_run_all(ranges, on_inferred{{shared_from_this(), e.cancel.slot()}});
}

void connection::inferred(const error_code& ec)
{
    infer_exchange& e = *infer_;
    e.running = false;
    e.turn.finish();
    const auto time = clock::now() - began_;
    if (ec)
        e.picked.version->counters.failed(time);
    else
        e.picked.version->counters.succeeded(e.call.rows, time);
    e.picked.ended(ec);
    if (phase_ == phase::closed) {
        e.picked = {};
        return;
    }
    if (ec)
        answer(failure_reply(ec));
    else
        answer_infer();
}

/// The reply to a request that may not load or unload models.
std::optional<reply> connection::without_control()
{
    const auto& token = core_->options().telemetry_token;
    if (from_elsewhere(head_))
        return error_reply(403, "Origin is " + in_quotes(head_.origin) + ", which is another site");
    if (!token.empty() && !detail::has_token(head_.authorization, token)) {
        reply r = error_reply(401, "loading and unloading models needs the token of the server");
        r.authenticate = "Bearer";
        return r;
    }
    if (token.empty() && core_->clients().divided())
        return error_reply(403, "tenants may not load and unload models; telemetry_token is not set");
    if (token.empty() && !core_->is_local())
        return error_reply(403, "other machines may not load and unload models; telemetry_token is not set");
    return std::nullopt;
}

void connection::control_repository(const route& where)
{
    auto done = [self = shared_from_this()](const error_code& ec) {
        // Without memory, the next sweep closes the connection.
        if (!self->post([ec](connection& c) { c.controlled(ec); }))
            self->deadline_.store(0, std::memory_order_relaxed);
    };
    if (where.where == endpoint::repository_load)
        core_->models().load(where.model, std::move(done));
    else
        core_->models().unload(where.model, std::move(done));
}

void connection::controlled(const error_code& ec)
{
    if (!ec)
        return answer(reply());
    if (ec == errc::invalid_argument)
        return answer(error_reply(404, ec.message()));
    // The model is the reason.
    if (ec == errc::start_failed)
        return answer(error_reply(400, ec.message()));
    answer(failure_reply(ec));
}

void connection::begin_telemetry()
{
    detail::http_question question;
    question.method = head_.method;
    question.target = head_.target;
    question.authorization = head_.authorization;
    http_route where = choose_route(question, core_->options().telemetry_token);
    // A token protects the page as well.
    if (core_->options().telemetry_token.empty() && !core_->serves_host(head_.host))
        where = http_route::wrong_host;
    switch (where) {
    case http_route::page: {
        reply r = from_telemetry(detail::page_reply());
        r.policy = detail::page_policy;
        return answer(std::move(r));
    }
    case http_route::ready: return answer(from_telemetry(detail::ready_reply(core_->devices())));
    case http_route::metrics:
    case http_route::state:
        collecting_ = where;
        core_->metrics().async_collect(on_collected{{shared_from_this(), {}}});
        return;
    case http_route::unknown:
    case http_route::trace: return answer(error_reply(404, "there is no path " + in_quotes(head_.target)));
    default: break;
    }
    reply r = from_telemetry(plain_reply(where));
    if (r.status == 405)
        r.allow = "GET, HEAD";
    if (r.status == 401)
        r.authenticate = "Bearer";
    answer(std::move(r));
}

void connection::collected(const error_code& ec, const telemetry::snapshot& all)
{
    answer(from_telemetry(collected_reply(collecting_, head_.accept, ec, all)));
}

} // namespace coaccel::server
