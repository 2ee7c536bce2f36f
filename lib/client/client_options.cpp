#include "client/client_options.hpp"

#include "client/client_flags.hpp"
#include "core/escape_text.hpp"
#include "core/near_name.hpp"
#include "core/unit_text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coaccel::client {
namespace {

error_code wrong_usage(const std::string& why)
{
    return make_error_with_message(errc::invalid_argument, why);
}

std::string shown_word(std::string_view word)
{
    return "'" + detail::escape_text(word.substr(0, 100)) + "'";
}

unsigned group_of(client_verb verb) noexcept
{
    return verb == client_verb::infer ? for_all | for_infer : verb == client_verb::load ? for_all | for_load : for_all;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& names)
{
    return word.size() <= 64 ? detail::suggestion(word, names) : std::string();
}

class word_reader {
public:
    explicit word_reader(std::span<const char* const> words) : rest_(words) {}

    error_code read(client_options& o)
    {
        if (rest_.empty())
            return {};
        if (auto ec = verb(o))
            return ec;
        while (!rest_.empty()) {
            const std::string_view word = next();
            if (auto ec = word.starts_with("--") ? flag(o, word.substr(2)) : model(o, word))
                return ec;
        }
        return {};
    }

private:
    std::string_view next()
    {
        const std::string_view word = rest_.front();
        rest_ = rest_.subspan(1);
        return word;
    }

    error_code verb(client_options& o)
    {
        auto word = next();
        if (word == "--help" || word == "-h")
            word = "help";
        if (word == "--version")
            word = "version";
        const auto found = std::ranges::find(client_verbs(), word, &verb_entry::name);
        if (found != client_verbs().end()) {
            o.verb = static_cast<client_verb>(found - client_verbs().begin());
            return {};
        }
        std::vector<std::string_view> names;
        for (const auto& v : client_verbs())
            names.push_back(v.name);
        return wrong_usage("unknown verb " + shown_word(word) + nearest(word, names));
    }

    error_code model(client_options& o, std::string_view word)
    {
        const auto& v = verb_of(o.verb);
        if (!v.may_have_model || !o.model.empty() || word.empty())
            return wrong_usage(std::string(v.name) + ": unexpected word " + shown_word(word));
        o.model = word;
        return {};
    }

    error_code flag(client_options& o, std::string_view word)
    {
        if (word == "help") {
            o.verb = client_verb::help;
            rest_ = {};
            return {};
        }
        const auto equals = word.find('=');
        const auto name = word.substr(0, std::min(equals, word.size()));
        const auto found = std::ranges::find(client_flags(), name, &flag_entry::name);
        const std::string verb(verb_of(o.verb).name);
        if (found == client_flags().end()) {
            std::vector<std::string_view> names;
            for (const auto& f : client_flags())
                names.push_back(f.name);
            return wrong_usage("unknown flag " + shown_word("--" + std::string(name)) + nearest(name, names));
        }
        const auto whole = "--" + std::string(name);
        if ((found->verbs & group_of(o.verb)) == 0)
            return wrong_usage(whole + " has no meaning for " + verb);
        std::string_view value;
        if (found->value.empty()) {
            if (equals != std::string_view::npos)
                return wrong_usage(whole + " has no value");
        } else if (equals != std::string_view::npos)
            value = word.substr(equals + 1);
        else if (rest_.empty())
            return wrong_usage(whole + ": the value is missing");
        else
            value = next();
        const auto expected = found->set(o, value);
        // Messages end up in logs.
        const auto shown = name == "key" ? "the value" : shown_word(value);
        return expected.empty() ? error_code()
                                : wrong_usage(whole + ": " + shown + " must be " + std::string(expected));
    }

    std::span<const char* const> rest_;
};

error_code check(const client_options& o)
{
    const auto& v = verb_of(o.verb);
    const std::string verb(v.name);
    if (v.needs_model && o.model.empty())
        return wrong_usage(verb + ": the name of the model is missing");
    if (!o.model_version.empty() && o.model.empty())
        return wrong_usage(verb + ": --version needs a model");
    if (!o.request_file.empty() && !o.inputs.empty())
        return wrong_usage(verb + ": --request and --input exclude each other");
    if (o.verb == client_verb::infer && o.request_file.empty() && o.inputs.empty())
        return wrong_usage("infer: an input is missing: --input FILE or --request FILE");
    if (!o.request_file.empty() && o.deadline.count() > 0)
        return wrong_usage(verb + ": --deadline has no meaning with --request, which has its own parameters");
    return {};
}

} // namespace

result<client_options> parse_client_options(std::span<const char* const> words, const client_environment& environment)
{
    client_options o;
    if (!environment.server.empty()) {
        auto parsed = parse_address(environment.server);
        if (!parsed)
            return wrong_usage("COACCEL_SERVER: " + parsed.error().message());
        o.where = std::move(parsed.value());
    }
    o.key = environment.key;
    if (auto ec = word_reader(words).read(o))
        return ec;
    if (auto ec = check(o))
        return ec;
    if (!o.count && !o.duration)
        o.duration = std::chrono::seconds(10);
    return o;
}

} // namespace coaccel::client
