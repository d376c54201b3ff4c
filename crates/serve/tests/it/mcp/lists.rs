//! The handshake and `tools/list`: what every client reads first.

use super::client::{Client, REVISION, hello};
use serde_json::{Value, json};

async fn tools(client: &mut Client) -> Vec<Value> {
    client.result("tools/list", json!({})).await["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_handshake_says_what_the_door_can() {
    let mut client = Client::raw();
    let hello = client.result("initialize", hello(REVISION)).await;
    assert_eq!(hello["serverInfo"]["name"], "traderharness");
    for (capability, says) in
        [("tools", json!({"listChanged": true})), ("resources", json!({"subscribe": true})), ("prompts", json!({}))]
    {
        assert_eq!(hello["capabilities"][capability], says, "{capability}");
    }
    assert!(hello["capabilities"]["completions"].is_object() && hello["capabilities"]["logging"].is_object());
    assert_eq!(hello["_meta"]["traderharness/session"], client.session);
    // Clients cut instructions at 2 KB.
    let instructions = hello["instructions"].as_str().unwrap();
    assert!(instructions.contains("`details.code` the `error_code`"), "{instructions}");
    assert!(instructions.len() < 2_000 && instructions.contains("read_brief") && !instructions.contains("  "));
    assert_eq!(client.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn another_revision_is_answered_with_one_of_ours() {
    for (asked, answered) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", REVISION), ("", REVISION)]
    {
        let mut client = Client::raw();
        let answer = client.result("initialize", hello(asked)).await;
        assert_eq!(answer["protocolVersion"], answered, "{asked}");
    }
}

// complaint MC-1; spec/seeds.md C9
#[tokio::test]
async fn tools_are_listed_in_catalog_order_in_a_form_that_every_client_takes() {
    let mut client = Client::new().await;
    let listed = tools(&mut client).await;
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let caller = client.house.local_caller("alice").unwrap();
    let mut expected: Vec<String> =
        client.house.listed(&caller, &client.session).unwrap().iter().map(|tool| tool.capability.tool.clone().unwrap()).collect();
    expected.push("read_brief".to_owned());
    assert_eq!(names, expected);
    assert!(names.contains(&"get_kline") && names.contains(&"place_order"));
    let again = tools(&mut client).await;
    assert_eq!(listed, again, "the order is the same every time");
    for tool in &listed {
        let name = tool["name"].as_str().unwrap();
        assert!(
            (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        );
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        for side in ["inputSchema", "outputSchema"] {
            let schema = &tool[side];
            assert_eq!(schema["type"], "object", "{name} {side}");
            let text = schema.to_string();
            assert!(!text.contains("\"$ref\"") && !text.contains("\"$defs\"") && !text.contains("\"x-"), "{name} {side}");
            jsonschema::draft202012::new(schema).unwrap_or_else(|fault| panic!("{name} {side}: {fault}"));
        }
        for keyword in ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum"] {
            assert_eq!(tool["inputSchema"].get(keyword), None, "{name} {keyword}");
        }
        for part in ["schema_version", "invocation_id", "status", "data", "evidence", "coverage", "warnings", "next_cursor"] {
            assert!(name == "read_brief" || tool["outputSchema"]["properties"][part].is_object(), "{name} {part}");
        }
    }
}

#[tokio::test]
async fn hints_follow_the_effect_that_the_host_declares() {
    let mut client = Client::new().await;
    let listed = tools(&mut client).await;
    let hints = |name: &str| {
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap();
        let of = |hint: &str| tool["annotations"][hint].as_bool().unwrap();
        (of("readOnlyHint"), of("destructiveHint"), of("idempotentHint"), of("openWorldHint"))
    };
    assert_eq!(hints("get_kline"), (true, false, true, false));
    assert_eq!(hints("read_brief"), (true, false, true, false));
    assert_eq!(hints("remember"), (false, false, false, false));
    assert_eq!(hints("place_order"), (false, true, false, false));
    let order = listed.iter().find(|tool| tool["name"] == "place_order").unwrap();
    assert_eq!(order["_meta"]["traderharness/capability"], "execution.place_order");
    assert_eq!(order["_meta"]["traderharness/revision"], "1.0");
    assert_eq!(order["title"], "Place order");
}

#[tokio::test]
async fn what_a_schema_may_not_show_is_said_in_words() {
    let mut client = Client::new().await;
    let listed = tools(&mut client).await;
    let tool = listed.iter().find(|tool| tool["name"] == "manage_conditional_order").unwrap();
    let description = tool["description"].as_str().unwrap();
    assert!(
        description
            .contains("When operation is \"create\": action, stock_code, quantity, comparator and trigger_price are required.")
    );
    assert!(description.contains("When operation is \"cancel\": order_id is required."));
}

#[tokio::test]
async fn lists_have_one_page() {
    let mut client = Client::new().await;
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let answer = client.request(method, json!({"cursor": "2"})).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}");
    }
}
