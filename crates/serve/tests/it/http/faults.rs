//! A caller that sends nothing but faults is told to come later, whatever kind they are; others are served.

use super::client::{DESK, OTHER, Served, new_key, request};

#[test]
fn faults_of_every_kind_count_and_good_callers_are_served() {
    let served = Served::new();
    let mut connection = served.connect();
    let key = new_key();
    let keyed: &[(&str, &str)] = &[("Idempotency-Key", &key)];
    let faults = [
        // Malformed, a wrong field, no key, a session, a tool and a job that nobody has, a page that is none.
        request("POST", "/v1/tool-invocations", DESK, keyed, Some("{\"tool\": ")),
        request("POST", "/v1/sessions", DESK, keyed, Some("{\"profil\": 1}")),
        request("POST", "/v1/sessions", DESK, &[], Some("{}")),
        request("GET", "/v1/sessions/ses_nobody", DESK, &[], None),
        request("GET", "/v1/tools/no_tool", DESK, &[], None),
        request("GET", "/v1/jobs/job_nobody", DESK, &[], None),
        request("GET", "/v1/sessions/ses_nobody/records?to=1", DESK, &[], None),
    ];
    let mut asked = 0_usize;
    let refused = loop {
        connection.send(faults[asked % faults.len()].as_bytes());
        let answer = connection.answer().expect("an answer");
        if answer.status == 429 {
            break answer;
        }
        assert!((400..500).contains(&answer.status), "{}", answer.text());
        asked += 1;
        assert!(asked < 2_000, "never told to come later");
    };
    // The allowance, and what comes back while the test runs.
    assert!((300..600).contains(&asked), "{asked} faults were answered");
    assert_eq!(refused.code(), "too_many_faults");
    assert!(refused.header("retry-after").is_some_and(|seconds| (1..=60).contains(&seconds.parse::<u32>().unwrap())));
    assert_eq!(served.get(OTHER, "/v1/sessions").status, 200);
    assert_eq!(served.get("th_nobody", "/v1/sessions").status, 401);
}
