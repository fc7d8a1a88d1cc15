"""Which variables a runner gets and which of them its tools may see."""

from __future__ import annotations

import pytest

from subagents_nb.domain.environment import runner_environ, tool_environ
from subagents_nb.domain.models import PROVIDERS

KERNEL = """
JPY_PARENT_PID JPY_SESSION_NAME JPY_API_TOKEN JUPYTER_TOKEN JUPYTER_SERVER_URL IPYTHONDIR MPLBACKEND
PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT PYDEVD_USE_CYTHON DEBUGPY_LAUNCHER_PORT COVERAGE_PROCESS_START
COV_CORE_SOURCE PYTEST_CURRENT_TEST GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR
PAGER GIT_PAGER FORCE_COLOR CLICOLOR TERM COLUMNS
""".split()  # noqa: SIM905

TOKENS = """
GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN HF_TOKEN HUGGING_FACE_HUB_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
AWS_SESSION_TOKEN AZURE_CLIENT_SECRET AZURE_OPENAI_API_KEY GOOGLE_APPLICATION_CREDENTIALS COHERE_API_KEY
NPM_TOKEN PYPI_TOKEN TWINE_PASSWORD PGPASSWORD MYSQL_PWD DB_PASS REDIS_PASSWORD SMTP_PASS SENTRY_DSN
SLACK_BOT_TOKEN STRIPE_SECRET_KEY DOCKER_AUTH_CONFIG VAULT_TOKEN CI_JOB_TOKEN CIRCLE_TOKEN
DIGITALOCEAN_ACCESS_TOKEN CLOUDFLARE_API_TOKEN HEROKU_API_KEY JWT_SECRET SESSION_COOKIE SSH_PRIVATE_KEY
GPG_PASSPHRASE GITLAB_PAT KAGGLE_KEY WANDB_API_KEY ENCRYPTION_KEY api_key Api_Token MYAPIKEY BEARER_TOKEN
NETRC_PASSWD AUTH_TOKEN npm_config__authToken GITHUBTOKEN CLIENTSECRET ACCESSKEY SECRETKEY AWS_CREDS
""".split()  # noqa: SIM905

INNOCENT = """
PATH HOME USER LOGNAME SHELL LANG LC_ALL TZ PWD OLDPWD TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY https_proxy
SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE VIRTUAL_ENV CONDA_PREFIX PYTHONPATH LD_LIBRARY_PATH
CUDA_VISIBLE_DEVICES KEYBOARD XKB_DEFAULT_LAYOUT MONKEY TURKEY_DIR AUTHOR GIT_AUTHOR_NAME XAUTHORITY
TOKENIZERS_PARALLELISM COMPASS BYPASS_CACHE PATTERN PATCH_LEVEL DISPLAY OMP_NUM_THREADS PASSENGER
COOKIECUTTER_CONFIG HOST_KEYBOARD SECRETARY TOKENIZER_PATH DSNAP BEARERS_NAME HOCKEY KEYNOTE
""".split()  # noqa: SIM905


def test_variables_of_kernels_debuggers_and_git_routing_do_not_reach_a_runner() -> None:
    got = runner_environ(dict.fromkeys([*KERNEL, *INNOCENT, "OPENAI_API_KEY"], "x"))
    assert not set(KERNEL) & set(got)
    assert set(INNOCENT) <= set(got)
    assert got["OPENAI_API_KEY"] == "x"


@pytest.mark.parametrize("name", [key for provider in PROVIDERS for key in provider.key_env])
def test_no_providers_key_reaches_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {}


@pytest.mark.parametrize("name", TOKENS)
def test_a_variable_that_looks_like_a_secret_does_not_reach_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {}
    assert tool_environ({name: "x"}, allowed=[name]) == {name: "x"}


def test_at_least_forty_such_names_are_tried() -> None:
    assert len(set(TOKENS)) >= 40


@pytest.mark.parametrize("name", INNOCENT)
def test_an_innocent_variable_reaches_a_tool(name: str) -> None:
    assert tool_environ({name: "x"}) == {name: "x"}
